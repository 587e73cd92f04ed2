"""PyTorch, eager: its own kernels, into an array that is there already where it allows it."""

# mypy: ignore-errors

import torch
import torch.nn.functional as functional

from ..small import GROUPS, POOL, SMALL, WINDOWS
from . import strips

VERSION = torch.__version__
torch.set_grad_enabled(False)


def _convolution(x, w, out):
    n, g, c, a, b = x.shape
    _, f, _, p, q = w.shape
    return functional.conv2d(x.reshape(n, g * c, a, b), w.reshape(g * f, c, p, q), groups=g).reshape(out.shape)


def _im2col(x, w, out):
    n, g, c, a, b = x.shape
    _, f, _, p, q = w.shape
    columns = functional.unfold(x.reshape(n, g * c, a, b), (p, q)).reshape(n, g, c * p * q, -1)
    torch.matmul(w.reshape(1, g, f, c * p * q), columns, out=out.view(n, g, f, -1))


def _einsum(a, b, c, u, out):
    return torch.einsum("ia,jb,kc,eabc->eijk", a, b, c, u)


def _three_products(a, b, c, u, out):
    e, n = u.shape[:2]
    t = (u.reshape(-1, n) @ c.T).view(e * n, n, n)
    t = torch.matmul(b, t).view(e, n, n * n)
    return torch.matmul(a, t).view(u.shape)


def _kronecker_of_two(a, b, c, u, out):
    e, n = u.shape[:2]
    return torch.matmul(a, (u.reshape(-1, n * n) @ torch.kron(b, c).T).view(e, n, n * n)).view(u.shape)


def _kronecker_batched(a, b, c, u, out):
    e, n = u.shape[:2]
    t = (u.reshape(-1, n * n) @ torch.kron(b, c).T).view(e, n, n * n)
    torch.bmm(a.expand(e, n, n), t, out=out.view(e, n, n * n))


def _kronecker_of_three(a, b, c, u, out):
    n = u.shape[1]
    torch.mm(u.view(-1, n**3), torch.kron(a, torch.kron(b, c)).T, out=out.view(-1, n**3))


def _interp(modes):
    return lambda p, u, out: modes(p, p, p, u, out)


def _helm(modes):
    def run(s, d, u, out):
        t = s.T.contiguous()
        return modes(t, t, t, modes(s, s, s, u, out).mul(d), out)

    return run


def _blur(x, out):
    rows = x[:, :-2] + x[:, 1:-1]
    rows += x[:, 2:]
    rows *= 1 / 3
    torch.add(rows[:-2], rows[1:-1], out=out)
    out += rows[2:]
    out *= 1 / 3


def _coars(x, y, out):
    a, b, c = x * x, y * y, x * y
    t = a + b
    torch.mul(a, b, out=out)
    out -= c.mul_(c)
    out -= t.mul_(t).mul_(0.04)


def _khatri_rao(b, c, d, out):
    torch.mm(b.view(b.shape[0], -1), (c[:, None, :] * d[None]).view(-1, c.shape[1]), out=out)


def _product(b, c, d, out):
    t = (b.view(-1, b.shape[2]) @ d).view(b.shape[0], b.shape[1], -1)
    return torch.einsum("ikj,kj->ij", t, c)


def _library_convolution(window):
    def run(x, w, out):
        depthwise, rank = w.ndim < x.ndim, x.ndim - 2
        convolve = (functional.conv1d, functional.conv2d, functional.conv3d)[rank - 1]
        return convolve(
            x,
            w[:, None] if depthwise else w,
            stride=window.stride,
            padding=window.padding,
            dilation=window.dilation,
            groups=x.shape[1] if depthwise else 1,
        )

    return run


def _unfolded(window):
    def run(x, w, out):
        columns = functional.unfold(
            x, w.shape[2:], stride=window.stride, padding=window.padding, dilation=window.dilation
        )
        torch.matmul(w.view(len(w), -1), columns, out=out.view(*out.shape[:2], -1))

    return run


def _taps(window):
    """Channels stay apart: the image, shifted and weighted, for each tap."""

    def run(x, w, out):
        out.zero_()
        for tap, part in window.shifted(x, w.shape[1:]):
            out.addcmul_(part, w[(..., *tap)][:, None, None])

    return run


def _convolutions():
    table = {name: {"convolution": _library_convolution(window)} for name, window in WINDOWS.items()}
    for name, formulations in table.items():
        if name.startswith("conv2d"):
            formulations["im2col"] = _unfolded(WINDOWS[name])
        elif name.startswith("depthwise"):
            formulations["taps"] = _taps(WINDOWS[name])
    return table


def _max_pool_taps(x, out):
    out.fill_(-torch.inf)
    for _, part in WINDOWS["max_pool"].shifted(x, (POOL, POOL)):
        torch.maximum(out, part, out=out)


def _kalman_products(f, q, x, p, out):
    n = len(f)
    torch.mm(x, f.T, out=out[0])
    torch.mm(torch.matmul(f, p).view(-1, n), f.T, out=out[1].view(-1, n))
    out[1].add_(q)


def _kalman_kronecker(f, q, x, p, out):
    n = len(f)
    torch.mm(x, f.T, out=out[0])
    torch.addmm(q.view(-1), p.view(-1, n * n), torch.kron(f, f).T, out=out[1].view(-1, n * n))


def _rotation_cross(q, v, out):
    t = torch.linalg.cross(q[:, 1:], v).mul_(2)
    torch.addcmul(v, q[:, :1], t, out=out)
    out += torch.linalg.cross(q[:, 1:], t)


def _rotation_components(q, v, out):
    w, x, y, z = q.T
    a, b, c = v.T
    r, s, t = 2 * (y * c - z * b), 2 * (z * a - x * c), 2 * (x * b - y * a)
    out[:, 0] = a + w * r + (y * t - z * s)
    out[:, 1] = b + w * s + (z * r - x * t)
    out[:, 2] = c + w * t + (x * s - y * r)


_MODES = {"einsum": _einsum, "three products": _three_products, "Kronecker of two": _kronecker_of_two}
_KRONECKER = {"Kronecker, batched": _kronecker_batched, "Kronecker of three": _kronecker_of_three}
# The product of three matrices takes n^4 / 3 times the least work.
_MOST_OF_THREE = 8

_FUNCTIONS = {
    "mm": {"mm": lambda a, b, out: torch.mm(a, b, out=out)},
    "tmm": {"mm": lambda a, b, out: torch.mm(a.T, b, out=out)},
    "bmm": {"bmm": lambda a, b, out: torch.bmm(a, b, out=out)},
    "gconv": {"conv2d": _convolution, "im2col": _im2col},
    "gconv_dw": {"conv2d": _convolution, "im2col": _im2col},
    "mttkrp": {
        "product": _product,
        "Khatri-Rao": _khatri_rao,
        "einsum": lambda b, c, d, out: torch.einsum("ikl,lj,kj->ij", b, d, c),
    },
    "sddmm": {"mm": lambda b, c, d, out: torch.mm(c, d, out=out).mul_(b)},
    "interp": {name: _interp(modes) for name, modes in (_MODES | _KRONECKER).items()},
    "helm": {name: _helm(modes) for name, modes in _MODES.items()},
    "blur": {"whole": _blur, "strips": strips(_blur, 64, halo=2)},
    "coars": {"whole": _coars, "strips": strips(_coars, 32)},
}


def _kron(n):
    table = {**_MODES, **_KRONECKER}
    return {name: modes for name, modes in table.items() if n <= _MOST_OF_THREE or modes is not _kronecker_of_three}


_BMM = {
    "bmm": lambda a, b, out: torch.bmm(a, b, out=out),
    "sums": lambda a, b, out: (a[:, :, :, None] * b[:, None]).sum(2),
}
_SMALL = {
    **{name: _kron(SMALL[name].sizes["n"]) for name in GROUPS["kron"]},
    **_convolutions(),
    "max_pool": {
        "max_pool2d": lambda x, out: functional.max_pool2d(x, POOL, WINDOWS["max_pool"].stride),
        "taps": _max_pool_taps,
    },
    "bmm3": _BMM,
    "bmm4": _BMM,
    "kalman": {"products": _kalman_products, "Kronecker": _kalman_kronecker},
    "rotation": {"cross": _rotation_cross, "components": _rotation_components},
}


def _calls(function):
    def formulation(task):
        torch.set_num_threads(task.threads)
        inputs, several = [torch.from_numpy(array) for array in task.inputs], isinstance(task.out, tuple)
        out = tuple(map(torch.from_numpy, task.out)) if several else torch.from_numpy(task.out)

        def run():
            found = function(*inputs, out)
            if several:
                return task.out
            return (out if found is None else found).numpy()

        return run

    return formulation


FORMULATIONS = {
    "torch": {
        kernel: {name: _calls(function) for name, function in functions.items()}
        for kernel, functions in (_FUNCTIONS | _SMALL).items()
    }
}
