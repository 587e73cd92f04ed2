"""Writes expected.json: what the NumPy kernels beside the `.ten` ones give for small inputs.

    python make_expected.py [FILE]

Inputs come from a hash of integers and are multiples of 1/32, so that they are exact on both sides; sizes are small,
unequal and mostly prime. The file holds the inputs too: whoever reads it needs no NumPy.
"""

import importlib.util
import inspect
import json
import sys
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np

sys.dont_write_bytecode = True
HERE = Path(__file__).parent
MASK = (1 << 64) - 1


def hashed(seed: int, at: int) -> int:
    """Five bits that look random (the finalizer of SplitMix64)."""
    z = (seed + (at + 1) * 0x9E3779B97F4A7C15) & MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return (z ^ (z >> 31)) >> 59


Recipe = Callable[[int], np.ndarray]


def bits(*shape: int) -> Recipe:
    """Whole numbers from 0 to 31, as floats."""
    return lambda seed: np.array([float(hashed(seed, at)) for at in range(int(np.prod(shape)))]).reshape(shape)


def signed(*shape: int) -> Recipe:
    """Numbers from -1 to 1, zero among them."""
    return lambda seed: (bits(*shape)(seed) - 16) / 16


def positive(*shape: int) -> Recipe:
    """Numbers from 1/2 to 3/2."""
    return lambda seed: 0.5 + bits(*shape)(seed) / 32


def unit(*shape: int) -> Recipe:
    """Numbers from 0 to 1, 1 not among them."""
    return lambda seed: bits(*shape)(seed) / 32


def spins(*shape: int) -> Recipe:
    """-1 or 1."""
    return lambda seed: np.where(bits(*shape)(seed) < 16, -1.0, 1.0)


def mask(*shape: int) -> Recipe:
    """Truth values, about three of four true, and true at the beginning of each row."""

    def made(seed: int) -> np.ndarray:
        values = bits(*shape)(seed) < 24
        values[..., 0] = True
        return values

    return made


def pixels(*shape: int) -> Recipe:
    """Bytes."""
    return lambda seed: (bits(*shape)(seed) * 8 + 5).astype(np.uint8)


def dominant(n: int) -> Recipe:
    """A symmetric matrix with a large diagonal."""

    def made(seed: int) -> np.ndarray:
        half = signed(n, n)(seed)
        return (half + half.T) / 2 + n * np.eye(n)

    return made


def lower(n: int) -> Recipe:
    """A lower triangular matrix with a large diagonal."""
    return lambda seed: np.tril(dominant(n)(seed))


def roads(n: int) -> Recipe:
    """Distances that are large except between neighbours, so that there are detours worth taking."""
    return lambda seed: bits(n, n)(seed) + np.where(np.abs(np.arange(n) - np.arange(n)[:, None]) == 1, 1, 16)


def decaying(n: int) -> Recipe:
    """Numbers that get smaller, the first of them less than 1/2."""
    return lambda seed: signed(n)(seed) / 2.0 ** np.arange(1, n + 1)


def bases(n: int) -> Recipe:
    """Whole numbers from 0 to 3, as floats."""
    return lambda seed: bits(n)(seed) % 4


def lattice(n: int) -> Recipe:
    """n points near the corners of a cubic lattice."""

    def made(seed: int) -> np.ndarray:
        corners = np.array([[at // 4, at // 2 % 2, at % 2] for at in range(n)])
        return 1.25 * corners + signed(n, 3)(seed) / 8

    return made


# The arguments of each kernel. Numbers are as they stand: integers are sizes, the others are scalars.
CASES = {
    "linalg/batched_gemm": dict(alpha=1.5, A=signed(2, 3, 5), B=signed(2, 7, 5), beta=-0.5, C=signed(2, 3, 7)),
    "linalg/conjugate_gradient": dict(A=dominant(7), b=signed(7), steps=4),
    "linalg/cp_residual": dict(X=signed(3, 5, 2), weights=positive(4), A=signed(3, 4), B=signed(5, 4), C=signed(2, 4)),
    "linalg/gemm": dict(alpha=1.5, A=signed(5, 7), B=signed(7, 3), beta=-0.5, C=signed(5, 3)),
    "linalg/gram_schmidt": dict(Q=signed(7, 3), v=signed(7)),
    "linalg/householder": dict(v=positive(5), A=signed(5, 7)),
    "linalg/jacobi": dict(A=dominant(7), b=signed(7), x0=signed(7), sweeps=5),
    "linalg/khatri_rao": dict(A=signed(3, 4), B=signed(5, 4)),
    "linalg/kron_matvec": dict(A=signed(2, 3), B=signed(7, 5), x=signed(15)),
    "linalg/mahalanobis": dict(X=signed(7, 3), mu=signed(3), P=dominant(3)),
    "linalg/mttkrp": dict(X=signed(5, 3, 7), B=signed(3, 2), C=signed(7, 2)),
    "linalg/power_iteration": dict(A=dominant(5), start=positive(5), steps=6),
    "linalg/rbf_kernel": dict(X=signed(5, 3), Y=signed(7, 3), gamma=0.75),
    "linalg/shortest_paths": dict(D0=roads(7)),
    "linalg/triangular_solve": dict(L=lower(7), b=signed(7)),
    "linalg/tucker_core": dict(X=signed(3, 5, 7), U=signed(2, 3), V=signed(3, 5), W=signed(5, 7)),
    "learning/attention": dict(Q=signed(2, 3, 5), K=signed(2, 7, 5), V=signed(2, 7, 4), mask=mask(3, 7)),
    "learning/batch_norm": dict(
        x=signed(2, 3, 5, 4), mu=signed(3), var=positive(3), gamma=positive(3), beta=signed(3), eps=0.03125
    ),
    "learning/conv2d": dict(x=signed(7, 10, 3), kernel=signed(5, 3, 2, 3), bias=signed(5)),
    "learning/cross_entropy": dict(logits=signed(5, 7), targets=positive(5, 7)),
    "learning/depthwise_conv": dict(x=signed(2, 3, 7, 5), kernel=signed(3, 3, 2)),
    "learning/gelu_mlp": dict(x=signed(3, 5), U=signed(5, 7), u=signed(7), V=signed(7, 5), v=signed(5)),
    "learning/group_norm": dict(x=signed(2, 3, 2, 5, 3), gamma=positive(3, 2), beta=signed(3, 2), eps=0.03125),
    "learning/layer_norm": dict(x=signed(5, 7), gamma=positive(7), beta=signed(7), eps=0.03125),
    "learning/lstm_cell": dict(
        x=signed(3), h=signed(5), c=signed(5), W=signed(20, 3), U=signed(20, 5), b=signed(20)
    ),
    "learning/max_pool": dict(x=signed(2, 3, 7, 4)),
    "learning/rotary": dict(x=signed(5, 2, 3, 2), base=10000.0),
    "learning/swiglu": dict(x=signed(3, 5), gain=positive(5), gate=signed(5, 7), up=signed(5, 7), down=signed(7, 5)),
    "fluids/divergence": dict(u=signed(5, 4, 7), v=signed(5, 4, 7), w=signed(5, 4, 7), dx=0.25),
    "fluids/inverse_helmholtz": dict(S=signed(3, 3), L=positive(3, 3, 3), u=signed(2, 3, 3, 3)),
    "fluids/lbm_collide": dict(f=positive(9, 3, 5), weight=positive(9), omega=1.25),
    "fluids/pressure_poisson": dict(p0=signed(7, 5), rhs=signed(7, 5), dx=0.5, steps=3),
    "fluids/restrict": dict(u=signed(9, 12), f=signed(9, 12), dx=0.5),
    "fluids/sem_gradient": dict(D=signed(3, 3), J=signed(2, 3, 3, 3, 3, 3), u=signed(2, 3, 3, 3)),
    "fluids/sem_interpolate": dict(P=signed(4, 3), u=signed(2, 3, 3, 3)),
    "fluids/shallow_water": dict(h0=positive(7), q0=signed(7), c=0.0625, steps=3),
    "fluids/upwind": dict(q=signed(5, 7), u=signed(5, 7), v=signed(5, 7), c=0.25),
    "fluids/vorticity": dict(omega=signed(5, 7), psi=signed(5, 7), nu=0.125, dx=0.5, dt=0.0625),
    "images/bilateral": dict(x=unit(7, 6), space=0.25, value=2.0),
    "images/box_blur": dict(x=unit(7, 5), k=3),
    "images/gaussian_blur": dict(x=unit(5, 7)),
    "images/harris": dict(x=unit(7, 9), k=0.0625),
    "images/local_contrast": dict(x=unit(7, 8), eps=0.03125),
    "images/opening": dict(x=unit(7, 9)),
    "images/perona_malik": dict(x0=unit(5, 7), k=0.5, rate=0.125, steps=2),
    "images/pyramid": dict(x=unit(9, 12)),
    "images/sobel": dict(x=unit(7, 5)),
    "images/unsharp_mask": dict(x=unit(7, 5), amount=0.75, threshold=0.125),
    "images/upsample": dict(x=unit(3, 5)),
    "images/ycbcr": dict(rgb=pixels(5, 3, 3)),
    "physics/christoffel": dict(inverse=signed(4, 4), dg=signed(4, 4, 4)),
    "physics/gray_scott": dict(u0=positive(5, 7), v0=unit(5, 7), feed=0.0625, kill=0.03125, steps=3),
    "physics/heat3d": dict(u0=signed(4, 5, 7), c=0.125, steps=3),
    "physics/ising": dict(s=spins(5, 7), coupling=1.5, field=0.25),
    "physics/lennard_jones": dict(x=lattice(7), side=3.5),
    "physics/maxwell2d": dict(
        E0=signed(5, 7), Hx0=signed(5, 6), Hy0=signed(4, 7), eps=positive(5, 7), c=0.25, steps=3
    ),
    "physics/nbody": dict(x=signed(7, 3), mass=positive(7), eps=0.125),
    "physics/ricci": dict(C=signed(3, 3, 3), dC=signed(3, 3, 3, 3)),
    "physics/wave2d": dict(u0=signed(5, 7), u1=signed(5, 7), c=0.25, steps=3),
    "polybench/adi": dict(u0=unit(5, 7), a=-0.75, d=-0.5, steps=3),
    "polybench/atax": dict(A=signed(5, 7), x=signed(7)),
    "polybench/bicg": dict(A=signed(5, 7), p=signed(7), r=signed(5)),
    "polybench/cholesky": dict(A=dominant(7)),
    "polybench/correlation": dict(data=signed(7, 5)),
    "polybench/covariance": dict(data=signed(7, 5)),
    "polybench/deriche": dict(x=unit(5, 7), alpha=0.25),
    "polybench/doitgen": dict(A=signed(3, 5, 7), C=signed(7, 4)),
    "polybench/durbin": dict(r=decaying(7)),
    "polybench/fdtd_2d": dict(ex0=signed(5, 7), ey0=signed(5, 7), hz0=signed(5, 7), border=signed(3)),
    "polybench/gemver": dict(
        alpha=1.5,
        beta=1.25,
        A=signed(7, 7),
        u1=signed(7),
        v1=signed(7),
        u2=signed(7),
        v2=signed(7),
        y=signed(7),
        z=signed(7),
    ),
    "polybench/gesummv": dict(alpha=1.5, beta=1.25, A=signed(5, 7), B=signed(5, 7), x=signed(7)),
    "polybench/gramschmidt": dict(A=signed(7, 5)),
    "polybench/jacobi_1d": dict(x0=signed(11), steps=3),
    "polybench/jacobi_2d": dict(x0=signed(5, 7), steps=3),
    "polybench/k2mm": dict(alpha=1.5, A=signed(3, 5), B=signed(5, 4), C=signed(4, 7), beta=1.25, D=signed(3, 7)),
    "polybench/k3mm": dict(A=signed(3, 5), B=signed(5, 4), C=signed(4, 7), D=signed(7, 2)),
    "polybench/lu": dict(A0=dominant(7)),
    "polybench/ludcmp": dict(A0=dominant(7), b=signed(7)),
    "polybench/mvt": dict(x1=signed(5), x2=signed(7), y1=signed(7), y2=signed(5), A=signed(5, 7)),
    "polybench/nussinov": dict(bases=bases(11)),
    "polybench/seidel_2d": dict(x0=signed(5, 7), steps=2),
    "polybench/symm": dict(alpha=1.5, A=signed(5, 5), B=signed(5, 7), beta=1.25, C=signed(5, 7)),
    "polybench/syr2k": dict(alpha=1.5, A=signed(7, 5), B=signed(7, 5), beta=1.25, C=signed(7, 7)),
    "polybench/syrk": dict(alpha=1.5, A=signed(7, 5), beta=1.25, C=signed(7, 7)),
    "polybench/trisolv": dict(L=lower(7), b=signed(7)),
    "polybench/trmm": dict(alpha=1.5, A=signed(5, 5), B=signed(5, 7)),
}

TYPES = {"float64": "f64", "bool": "bool", "uint8": "u8"}


def kernel(name: str) -> Callable:
    """The function of a NumPy file, which has the file's name."""
    path = HERE / f"{name}.py"
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, path.stem)


def stored(value: np.ndarray | float) -> dict:
    """An array as its type, shape and elements row by row."""
    array = np.asarray(value)
    return {"type": TYPES[array.dtype.name], "shape": list(array.shape), "data": array.ravel().tolist()}


def run(name: str, arguments: dict) -> dict:
    """A kernel's inputs and outputs."""
    function = kernel(name)
    sizes = {key: value for key, value in arguments.items() if isinstance(value, int)}
    arrays = {
        key: np.float64(value) if isinstance(value, float) else value(zlib.crc32(f"{name}/{key}".encode()))
        for key, value in arguments.items()
        if key not in sizes
    }
    assert list(arguments) == list(inspect.signature(function).parameters), name
    # Inputs are stored first: no kernel may change them.
    inputs = {key: stored(value) for key, value in arrays.items()}
    outputs = function(**{key: sizes.get(key, arrays.get(key)) for key in arguments})
    outputs = outputs if isinstance(outputs, tuple) else (outputs,)
    assert inputs == {key: stored(value) for key, value in arrays.items()}, name
    assert all(np.isfinite(output).all() for output in outputs), name
    return {"sizes": sizes, "inputs": inputs, "outputs": [stored(output) for output in outputs]}


def write(cases: dict, target: Path) -> None:
    """Runs all kernels of a table like `CASES`; one line each."""
    compact = {"separators": (",", ":"), "allow_nan": False}
    kernels = [f"{json.dumps(name)}:{json.dumps(run(name, cases[name]), **compact)}" for name in sorted(cases)]
    target.write_text("{\n" + ",\n".join(kernels) + "\n}\n")


def main() -> None:
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / "expected.json"
    domains = {name.split("/")[0] for name in CASES}
    files = {str(path.relative_to(HERE).with_suffix("")) for path in HERE.glob("*/*.ten")}
    files = {name for name in files if name.split("/")[0] in domains}
    assert files == set(CASES), files ^ set(CASES)
    write(CASES, target)


if __name__ == "__main__":
    main()
