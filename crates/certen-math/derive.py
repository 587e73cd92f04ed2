"""Derives the coefficients of src/coefficients.rs: `python3 derive.py > src/coefficients.rs` (it needs mpmath).

Each polynomial is the one of least squares in Chebyshev nodes, of the error that matters: relative to the result, or
weighted as the function that uses it says. That is within a small factor of the best polynomial. It is computed with 50
digits, then its coefficients are rounded one by one, the lowest first, and the others are fitted again to what is left.
The largest error of what is printed, measured between the nodes, stands beside it.
"""

from mpmath import mp, mpf

mp.dps = 50


def nodes(low, high, count):
    return [(low + high) / 2 + (high - low) / 2 * mp.cos(mp.pi * (2 * k + 1) / (2 * count)) for k in range(count)]


def least_squares(f, weight, points, lowest, count):
    """Coefficients of x**lowest and above."""
    rows = mp.matrix(len(points), count)
    right = mp.matrix(len(points), 1)
    for at, x in enumerate(points):
        w = weight(x)
        for k in range(count):
            rows[at, k] = w * x ** (lowest + k)
        right[at] = w * f(x)
    return list(mp.qr_solve(rows, right)[0])


def single(value):
    import struct

    return mpf(struct.unpack("f", struct.pack("f", float(value)))[0])


def fit(name, about, f, weight, low, high, count, rounded=lambda c: mpf(float(c)), again=4):
    low, high = mpf(low), mpf(high)
    points = nodes(low, high, max(40, 3 * count))
    values = {x: f(x) for x in points}
    done = []
    rest = lambda x: values[x] - sum(c * x**k for k, c in enumerate(done))
    while len(done) < count:
        found = least_squares(rest, weight, points, len(done), count - len(done))
        done += [rounded(c) for c in (found[:1] if len(done) < again else found)]
    between = nodes(low, high, 4 * count + 7)
    error = max(abs(weight(x) * (f(x) - sum(c * x**k for k, c in enumerate(done)))) for x in between)
    print(f"/// {about}; error 2^{float(mp.log(error, 2)):.1f}.")
    print(f"pub(crate) const {name}: [f64; {count}] = [")
    for c in done:
        print(f"    {float(c)!r},")
    print("];\n")


def parts(name, about, value, count, rounded=lambda c: mpf(float(c))):
    """A constant as a sum of numbers, each the nearest to what is left."""
    found = []
    for _ in range(count):
        found.append(rounded(value - sum(found, mpf(0))))
    print(f"/// {about}, the largest part first.")
    print(f"pub(crate) const {name}: [f64; {count}] = [{', '.join(repr(float(c)) for c in found)}];\n")


def table_of_two_over_pi():
    """2/pi * 2**(16 j - 32) modulo 4 in four parts."""
    mp.prec = 1500
    rows = []
    for j in range(64):
        value = mp.fmod(2 / mp.pi * mpf(2) ** (16 * j - 32), 4)
        for _ in range(4):
            part = mpf(float(value))
            rows.append(float(part))
            value -= part
    mp.dps = 50
    print("/// 2/pi times 2^(16 j - 32) modulo 4 for each j, in four parts.")
    print("pub(crate) static TWO_OVER_PI: [f64; 256] = [")
    for part in rows:
        print(f"    {part!r},")
    print("];\n")


def expm1_rest(r):
    return (mp.expm1(r) - r) / r**2 if r else mpf(1) / 2


def log_rest(z):
    s = mp.sqrt(z)
    return (2 * mp.atanh(s) - 2 * s) / (s * z)


def sin_rest(z):
    r = mp.sqrt(z)
    return (mp.sin(r) / r - 1) / z


def cos_rest(z):
    return (mp.cos(mp.sqrt(z)) - 1 + z / 2) / z**2


def erf_rest(z):
    x = mp.sqrt(z)
    return mp.erf(x) / x - 1


print("//! Coefficients and constants, as `derive.py` prints them.\n")
print("// Shortest digits that are read back as the same number, and more of them than people like.")
print("#![allow(clippy::excessive_precision, clippy::unreadable_literal, clippy::approx_constant)]\n")
parts("LN_2", "ln 2", mp.log(2), 3)
parts("LN_2_SINGLE", "ln 2, in single precision", mp.log(2), 3, single)
parts("LOG2_E", "1 / ln 2", 1 / mp.log(2), 2)
parts("HALF_PI", "pi / 2", mp.pi / 2, 4)
parts("TWO_THIRDS", "2 / 3", mpf(2) / 3, 2)
half_ln2 = mp.log(2) / 2 * mpf("1.001")
fit("EXP", "(exp(r) - 1 - r) / r^2 for |r| up to ln(2) / 2", expm1_rest, lambda r: r**2, -half_ln2, half_ln2, 10)
fit("EXP_7", "The same, shorter", expm1_rest, lambda r: r**2, -half_ln2, half_ln2, 6)
fit("EXP_SINGLE", "The same in single precision", expm1_rest, lambda r: r**2, -half_ln2, half_ln2, 5, single)
most = mpf("0.17158") ** 2
fit("LOG", "(2 atanh(s) - 2 s) / s^3 by s^2, for 1 + f from sqrt(1/2) to sqrt(2) and s = f / (2 + f)", log_rest, lambda z: z, "1e-30", most, 7)
fit("LOG_LONG", "The same without 2/3 and divided by s^2", lambda z: (log_rest(z) - mpf(2) / 3) / z, lambda z: z**2, "1e-14", most, 8)
fit("LOG_4", "The same as the first, shorter", log_rest, lambda z: z, "1e-30", most, 4)
quarter = (mp.pi / 4 * mpf("1.0001")) ** 2
fit("SIN", "(sin(r) / r - 1) / r^2 by r^2, for |r| up to pi / 4", sin_rest, lambda z: z, "1e-12", quarter, 6)
fit("COS", "(cos(r) - 1 + r^2 / 2) / r^4 by r^2, for |r| up to pi / 4", cos_rest, lambda z: z**2, "1e-8", quarter, 6)
fit("SIN_4", "As SIN, shorter", sin_rest, lambda z: z, "1e-12", quarter, 4)
fit("COS_4", "As COS, shorter", cos_rest, lambda z: z**2, "1e-8", quarter, 4)
fit("ERF", "erf(x) / x - 1 by x^2, for x up to 1", erf_rest, lambda z: 1, "1e-30", "1.01", 13)
fit("ERF_7", "The same, shorter", erf_rest, lambda z: 1, "1e-30", "1.01", 8)
middle = mpf(3)
log_erfc = lambda t: -mp.log(mp.erfc(t + middle))
fit("ERFC_LOG", "-log(1 - erf(t + 3)) for t from -2 to 3, its error weighted by 1 - erf", log_erfc, lambda t: mp.erfc(t + middle), "-2.01", "2.95", 18)
middle = mpf(2)
fit("ERFC_LOG_SHORT", "-log(1 - erf(t + 2)) for t from -1 to 2, its error weighted by 1 - erf", log_erfc, lambda t: mp.erfc(t + middle), "-1.01", "2", 10)
table_of_two_over_pi()
