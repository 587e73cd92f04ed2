# Covers: a convolution with padding in a stage of its own.
from tvm import te
import tvm

ic, oc, size, ks, pad = 2, 3, 5, 3, 1
data = te.placeholder((ic, size, size), name="data")
weight = te.placeholder((oc, ic, ks, ks), name="weight")
out = size + 2 * pad - ks + 1
P = te.compute(
    (ic, size + 2 * pad, size + 2 * pad),
    lambda c, y, x: te.if_then_else(
        te.any(y < pad, y >= size + pad, x < pad, x >= size + pad), 0.0, data[c, y - pad, x - pad]),
    name="P")
rc = te.reduce_axis((0, ic), name="rc")
ry = te.reduce_axis((0, ks), name="ry")
rx = te.reduce_axis((0, ks), name="rx")
C = te.compute(
    (oc, out, out),
    lambda c, y, x: te.sum(P[rc, y + ry, x + rx] * weight[c, rc, ry, rx], axis=[rc, ry, rx]),
    name="C")
