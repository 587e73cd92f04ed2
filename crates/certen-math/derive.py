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
    """2/pi * 2**(16 j - 48) modulo 4 in four parts."""
    mp.prec = 1500
    rows = []
    for j in range(64):
        value = mp.fmod(2 / mp.pi * mpf(2) ** (16 * j - 48), 4)
        for _ in range(4):
            part = mpf(float(value))
            rows.append(float(part))
            value -= part
    mp.dps = 50
    print("/// 2/pi times 2^(16 j - 48) modulo 4 for each j, in four parts.")
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


def tanh_rest(z):
    x = mp.sqrt(z)
    return (mp.tanh(x) / x - 1) / z


def erf_rest(z):
    x = mp.sqrt(z)
    return mp.erf(x) / x - 1


print("//! Coefficients and constants, as `derive.py` prints them.\n")
print("// Shortest digits that are read back as the same number, and more of them than people like.")
print("#![allow(clippy::excessive_precision, clippy::unreadable_literal, clippy::approx_constant)]\n")
parts("LN_2", "ln 2", mp.log(2), 3)
parts("LN_2_SINGLE", "ln 2, in single precision", mp.log(2), 3, single)
parts("LOG2_E", "1 / ln 2", 1 / mp.log(2), 2)
parts("LOG10_E", "1 / ln 10", 1 / mp.log(10), 2)
parts("PI", "pi", mp.pi, 2)
parts("LOG10_2", "log10(2)", mp.log10(2), 2)
parts("HALF_PI", "pi / 2", mp.pi / 2, 4)
parts("HALF_PI_SINGLE", "pi / 2, in single precision", mp.pi / 2, 4, single)
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
quarter_single = (mp.pi / 4 * mpf("1.003")) ** 2
fit("SIN_SINGLE", "As SIN, in single precision", sin_rest, lambda z: z, "1e-12", quarter_single, 4, single)
fit("COS_SINGLE", "As COS, in single precision", cos_rest, lambda z: z**2, "1e-8", quarter_single, 3, single)
fit("ERF", "erf(x) / x - 1 by x^2, for x up to 1", erf_rest, lambda z: 1, "1e-30", "1.01", 13)
fit("ERF_SINGLE", "The same in single precision", erf_rest, lambda z: 1, "1e-30", "1.01", 7, single)
log_erfc = lambda t: -mp.log(mp.erfc(t + 1))
fit("ERFC_LOG", "-log(1 - erf(t + 1)) for t up to 4.95, its error weighted by 1 - erf", log_erfc, lambda t: mp.erfc(t + 1), "-0.01", "4.95", 19)
fit("ERFC_LOG_SINGLE", "The same up to 3 in single precision", log_erfc, lambda t: mp.erfc(t + 1), "-0.01", "3", 9, single)
slow = lambda u: mp.exp(at(u) ** 2) * mp.erfc(at(u)) * (1 + 2 * at(u))
at = lambda u: 2 * (1 + u) / (1 - u)
fit("ERFC", "exp(x^2) erfc(x) (1 + 2 x) by (x - 2) / (x + 2), for x from 0.45 to 27.5", slow, lambda u: 1, (mpf("0.45") - 2) / (mpf("0.45") + 2), mpf("25.5") / mpf("29.5"), 25)
fit("ERFC_12", "The same, shorter, for x up to 11", slow, lambda u: 1, (mpf("0.45") - 2) / (mpf("0.45") + 2), mpf("9") / mpf("13"), 13)
fit("TANH_SINGLE", "(tanh(x) / x - 1) / x^2 by x^2, for x up to 1, in single precision", tanh_rest, lambda z: z, "1e-12", "1.01", 7, single)
fit("LOG_SINGLE", "As LOG, in single precision", log_rest, lambda z: z, "1e-30", most, 3, single)
asin_rest = lambda z: (mp.asin(mp.sqrt(z)) / mp.sqrt(z) - 1) / z
fit("ASIN", "(asin(x) / x - 1) / x^2 by x^2, for x up to 1/2", asin_rest, lambda z: z, "1e-12", "0.2501", 13)
fit("ASIN_6", "The same, shorter", asin_rest, lambda z: z, "1e-12", "0.2501", 7)
atan_rest = lambda z: (mp.atan(mp.sqrt(z)) / mp.sqrt(z) - 1) / z
fit("ATAN", "(atan(x) / x - 1) / x^2 by x^2, for x up to tan(pi / 8)", atan_rest, lambda z: z, "1e-12", mp.tan(mp.pi / 8) ** 2, 12)
fit("ATAN_6", "The same, shorter", atan_rest, lambda z: z, "1e-12", mp.tan(mp.pi / 8) ** 2, 6)
table_of_two_over_pi()
