"""What the kernels in this folder have to come to: NumPy's values for those that are safe, what is said of the others.

Run it with a Python that has NumPy to write `expected.json`, which the tests read; they never run NumPy.
"""

import json
from pathlib import Path

import numpy as np


def array(number, shape, whole):
    """The input of this number: multiples of a quarter, or whole numbers, none of them zero."""
    at = np.arange(int(np.prod(shape, dtype=int)))
    values = (7 * at + 3 * number) % 11 + 1
    return (values if whole else values / 4).reshape(shape)


def safe(outputs, compute, whole=False, **shapes):
    inputs = {name: array(number, shape, whole) for number, (name, shape) in enumerate(shapes.items())}
    results = compute(**inputs)
    if isinstance(outputs, str):
        outputs, results = [outputs], [results]
    flat = lambda value: {"shape": list(np.shape(value)), "data": np.ravel(value).tolist()}
    return {
        "verdict": "safe",
        "inputs": {name: flat(value) for name, value in inputs.items()},
        "outputs": {name: flat(value) for name, value in zip(outputs, results, strict=True)},
    }


def unsafe(code, *words):
    return {"verdict": "unsafe", "code": code, "says": words}


def refused(code, *words):
    return {"verdict": "refused", "code": code, "says": words}


def conv2d(I, W1, B):
    n, _, h, w = I.shape
    o, _, kh, kw = W1.shape
    out = np.zeros((n, o, h - kh + 1, w - kw + 1))
    for y in range(out.shape[2]):
        for x in range(out.shape[3]):
            out[:, :, y, x] = np.einsum("ncij,ocij->no", I[:, :, y:y + kh, x:x + kw], W1)
    return out + B[None, :, None, None]


def conv2d_padded(data, weight):
    return conv2d(np.pad(data, ((0, 0), (1, 1), (1, 1)))[None], weight, np.zeros(weight.shape[0]))[0]


def maxpool(input):
    b, c, h, w = input.shape
    return input[:, :, : h // 2 * 2, : w // 2 * 2].reshape(b, c, h // 2, 2, w // 2, 2).max(axis=(3, 5))


def softmax(I):
    most = I.max(axis=1)
    exp = np.exp(I - most[:, None])
    return [exp / exp.sum(axis=1, keepdims=True), most, exp.sum(axis=1)]


def interpolation(S, u):
    return np.einsum("ia,jb,kc,abc->ijk", S, S, S, u)


def helmholtz(S, D, u):
    return np.einsum("ai,bj,ck,abc->ijk", S, S, S, D * interpolation(S, u))


def gradient(D, u):
    return np.stack([np.einsum("ia,ajk->ijk", D, u), np.einsum("ja,iak->ijk", D, u), np.einsum("ka,ija->ijk", D, u)])


KERNELS = {
    "taco": {
        "fig2a": safe("A", lambda B, C: np.einsum("ijk,k->ij", B, C), B=(2, 3, 5), C=(5,)),
        "fig2b": safe("A", lambda B, C: np.einsum("ijk,i->ij", B, C), B=(2, 3, 5), C=(2,)),
        "fig2c": safe("A", lambda B, C: np.einsum("kji,i->ij", B, C), B=(5, 3, 2), C=(2,)),
        "fig3a": unsafe("E1002", "`k` has two sizes: dimension 1 of `A` is m, dimension 1 of `B` is n"),
        "fig3b": safe("C", lambda A, B: A.T @ B, A=(5, 2), B=(5, 3)),
        "matmul": safe("A", lambda B, C: B @ C, B=(3, 5), C=(5, 2)),
        "spmv": safe("y", lambda A, x: A @ x, A=(3, 5), x=(5,)),
        "matrix_add": safe("A", lambda B, C: B + C, B=(3, 5), C=(3, 5)),
        "product_of_three": safe("A", lambda B, C, D: B * C * D, B=(2, 3, 5), C=(2, 3, 5), D=(2, 3, 5)),
        "mttkrp": safe("A", lambda B, C, D: np.einsum("ikl,lj,kj->ij", B, D, C), B=(2, 3, 5), C=(3, 4), D=(5, 4)),
        "ttm": safe("A", lambda B, C: np.einsum("ijq,kq->ijk", B, C), B=(2, 3, 5), C=(4, 5)),
        "inner": safe("a", lambda B, C: np.sum(B * C), B=(3, 5), C=(3, 5)),
        "sddmm": safe("A", lambda B, C, D: B * (C @ D), B=(3, 2), C=(3, 5), D=(5, 2)),
        "residual": safe("y", lambda b, A, x: b - A @ x, b=(3,), A=(3, 5), x=(5,)),
        "smallest_sum": safe("y", lambda A, x, z: np.sum(A * x + z, axis=1), A=(3, 5), x=(5,), z=(5,)),
        "explicit_sum": safe("y", lambda A, z: A.sum(axis=1) / z, A=(3, 5), z=(3,)),
        "scalar": safe("A", lambda B, alpha: alpha * B, B=(3, 5), alpha=()),
        "literals": safe("A", lambda B: 2 * B + 0.5, B=(7,)),
        "negation": safe("A", lambda B, C: B * C + B, B=(7,), C=(7,)),
        "division": safe("A", lambda B, C: B / C, B=(3, 5), C=(5,)),
        "accumulate": safe("A", lambda A, B: A + B.sum(axis=1), A=(3,), B=(3, 5)),
        "transposed": safe("A", lambda B: B.T, B=(5, 3)),
        "window": safe("A", lambda B, C: B[1:4] * C[:, 5:10], B=(7, 5), C=(3, 11)),
        "strided_window": safe("A", lambda B: B[1:6:2], B=(7,)),
        "window_past_end": unsafe("E1001", "i + 4 must be below 7"),
        "option_d": safe("y", lambda A, x: A @ x, A=(5, 3), x=(3,)),
        "option_d_tensor": unsafe("E1002", "`j` has two sizes: dimension 2 of `A` is 3, dimension 1 of `x` is 4"),
        "option_t": safe("y", lambda A, x: A @ x, A=(3, 5), x=(5,), whole=True),
        "mode_order": safe("y", lambda A, x: A @ x, A=(3, 5), x=(5,)),
        "function": safe("A", lambda B: np.sqrt(B), B=(7,)),
        "outer": safe("A", lambda b, c: np.outer(b, c), b=(3,), c=(5,)),
        "diagonal": safe("a", lambda B: np.diag(B), B=(5, 5)),
        "floats": safe("A", lambda B, C: B @ C, B=(3, 5), C=(5, 2)),
        "mixed": safe("y", lambda A, x: A @ x, A=(3, 5), x=(5,)),
        "parentheses": safe("y", lambda A, x, z: A @ (x + z), A=(3, 5), x=(5,), z=(5,)),
        "off_by_one": unsafe("E1002", "dimension 2 of `A` is n + 1, dimension 1 of `x` is n"),
        "other_result": unsafe("E1002", "`i` has two sizes"),
        "index_set": refused("E1004", "sets of indices"),
        "affine": refused("E1004", "arithmetic in an index"),
        "subscripts": refused("E1004", "indices as subscripts"),
        "complex": refused("E1004", "elements of type `complex`"),
        "hidden_sum": refused("E1004", "a sum over `j` that is not written, in a divisor"),
        "format_rank": refused("E0234", "the format is for 3 dimensions"),
        "undeclared": refused("E0201", "`A` is not declared"),
    },
    "tc": {
        "fig3a": unsafe("E1002", "`k` has two sizes: dimension 1 of `A` is m, dimension 1 of `B` is n"),
        "fig3b": safe("C", lambda A, B: A.T @ B, A=(5, 2), B=(5, 3)),
        "fig4a": safe("A", lambda B, C: B + C, B=(7,), C=(7,)),
        "fig4b": safe("A", lambda B, C: B + C, B=(7,), C=(7,)),
        "matmul": safe("C", lambda A, B: A @ B, A=(3, 5), B=(5, 2)),
        "mv": safe("o", lambda A, B: A @ B, A=(3, 5), B=(5,)),
        "conv1d": safe("A", lambda B, K: np.correlate(B, K), B=(7,), K=(3,)),
        "conv2d": safe("out", conv2d, I=(2, 3, 5, 4), W1=(2, 3, 3, 2), B=(2,)),
        "maxpool": safe("output", maxpool, input=(1, 2, 5, 4)),
        "minimum": safe("s", lambda A: A.min(axis=1), A=(3, 5)),
        "product": safe("p", lambda A: A.prod(axis=1), A=(3, 5)),
        "accumulate": safe("s", lambda A, s: s + A.sum(axis=1), A=(3, 5), s=(3,)),
        "accumulate_max": safe("s", lambda B, A: np.maximum(B, A.max(axis=1)), B=(3,), A=(3, 5)),
        "relu": safe("O", lambda I: np.maximum(I - 1, 0), I=(3, 5)),
        "mlp": safe(["O", "P"], lambda I, W, C: [I @ W.T + C, np.tanh(I @ W.T + C)], I=(2, 5), W=(3, 5), C=(3,)),
        "where_range": unsafe("E1001", "i must be below N"),
        "where_size": safe("B", lambda A: A[:6:2], A=(7,)),
        "exists": safe("B", lambda A, c: np.full(7, c), A=(7,), c=()),
        "ternary": safe("B", lambda A: np.concatenate([A[:1], A[:-1]]), A=(7,)),
        "ternary_data": safe("B", lambda A: np.where(A > 1.5, A, 1.5), A=(7,)),
        "ternary_unguarded": unsafe("E1001", "i - 2 must be at least 0"),
        "size_of": safe("B", lambda A: A * 5 + 3, A=(3, 5)),
        "size_variable": safe("m", lambda A: A.mean(), A=(7,)),
        "subsample": safe("A", lambda B: B[::2], B=(7,)),
        "average_pool": safe("A", lambda B: 0.5 * (B[:6:2] + B[1:7:2]), B=(7,)),
        "average_pool_where": safe("A", lambda B: 0.5 * (B[:6:2] + B[1:7:2]), B=(7,)),
        "stencil": safe("A", lambda B: np.diff(B), B=(7,)),
        "offset_range": unsafe("E1003", "the elements that are stored are not those of `A`"),
        "reverse": safe("A", lambda B: B[::-1], B=(7,)),
        "inverted": unsafe("E1003", "the elements that are stored are not those of `A`"),
        "precondition": unsafe("E1001", "i + j must be below J"),
        "precondition_known": safe("A", lambda B, C, D: B[:, None] * np.array([C[i:i + 5] for i in range(3)]) * D, B=(3,), C=(7,), D=(5,)),
        "literal_sizes": unsafe("E1002", "`i` has two sizes: dimension 1 of `B` is 3, dimension 1 of `C` is 4"),
        "doubles": safe("A", lambda B: np.exp(B) / (1 + B), B=(7,)),
        "casts": safe("A", lambda B: B.astype(np.float32) / 2, B=(7,), whole=True),
        "transpose": safe("A", lambda B: B.T, B=(3, 5)),
        "softmax": safe(["O", "M", "S"], softmax, I=(3, 5)),
        "modulo": safe("A", lambda B: np.resize(B, 11), B=(4,)),
        "part": safe("A", lambda B: B + np.array([0, 1, 1, 1, 1, 1, 0]), B=(7,)),
        "no_range": unsafe("E1003", "the range of `j` cannot be inferred"),
        "no_reduction": unsafe("E1003", "`j` stands on the right side only"),
        "dynamic_stride": refused("E1004", "an index that is an element of a tensor"),
        "lookup": refused("E1004", "an index that is an element of a tensor"),
        "half": refused("E1004", "elements of type `half`"),
        "call": refused("E1004", "a call of another definition"),
    },
    "tvm": {
        "fig3a": unsafe("E1001", "k must be below m", "`A` is [m, h]", "`B` is [n, h]"),
        "fig3b": safe("C", lambda A, B: A.T @ B, A=(5, 2), B=(5, 3)),
        "vector_add": safe("C", lambda A, B: A + B, A=(7,), B=(7,)),
        "matmul": safe("C", lambda A, B: A @ B, A=(3, 5), B=(5, 2)),
        "known_sizes": safe("C", lambda A, B: A @ B, A=(3, 5), B=(5, 6)),
        "function_template": safe("C", lambda A, B: A @ B, A=(3, 5), B=(5, 2)),
        "scalar_constant": safe("B", lambda A: 2 * A + 1, A=(7,)),
        "constant": safe("B", lambda A: A + 1.5, A=(7,)),
        "two_stages": safe("C", lambda A: (A + 1) * 2, A=(7,)),
        "two_axes": safe("S", lambda A: A.sum().reshape(1), A=(3, 5)),
        "maximum": safe("S", lambda A: A.max(axis=1), A=(3, 5)),
        "minimum": safe("S", lambda A: A.min(axis=1), A=(3, 5)),
        "conv1d": safe("B", lambda A, W: np.correlate(A, W), A=(7,), W=(3,)),
        "conv1d_too_long": unsafe("E1001", "i + k must be below n"),
        "padding": safe("B", lambda A: np.pad(A, 1), A=(7,)),
        "padding_tir": safe("B", lambda A: np.pad(A, (0, 1)), A=(7,)),
        "padding_wrong": unsafe("E1001", "i - 1 must be below n"),
        "select": unsafe("E1001", "i must be below n"),
        "select_inside": safe("B", lambda A: np.where(np.arange(7) < 2, A, 0), A=(7,)),
        "all_indices": safe("B", lambda A: np.exp(A), A=(3, 5)),
        "call_access": safe("B", lambda A: A.T, A=(3, 5)),
        "named_function": safe("B", lambda A: A + A, A=(7,)),
        "shape": safe("B", lambda A: A.T, A=(3, 5)),
        "floordiv": safe("B", lambda A: A.reshape(12), A=(4, 3)),
        "floordiv_wrong": unsafe("E1001", "floor_div(i, 2) must be below 4"),
        "pooling": safe("B", lambda A: A.reshape(2, 4, 2).max(axis=2), A=(2, 8)),
        "conv2d": safe("C", conv2d_padded, data=(2, 5, 5), weight=(3, 2, 3, 3)),
        "lower_bound": safe("S", lambda A: (A[:-2] + A[2:]).sum().reshape(1), A=(7,)),
        "lower_bound_wrong": unsafe("E1001", "k - 1 must be at least 0"),
        "astype": safe("B", lambda A: A * 0.5, A=(7,), whole=True),
        "index_as_data": safe("B", lambda A: A * np.arange(7), A=(7,)),
        "functions": safe("B", lambda A: np.sqrt(A) + np.tanh(A) - np.log(A), A=(7,)),
        "power": safe("B", lambda A: np.maximum(A ** 2, 1), A=(7,)),
        "relu": safe("B", lambda A: np.where(A > 1.5, A, 0), A=(7,)),
        "where": safe("S", lambda A: A[:-2].sum().reshape(1), A=(7,)),
        "batch": safe("C", lambda A, B: A @ B.transpose(0, 2, 1), A=(2, 3, 5), B=(2, 4, 5)),
        "same_name": safe("B", lambda A: A + 1, A=(7,)),
        "wrong_rank": refused("E0234", "`A` has 2 dimensions, and is accessed by 1"),
        "data_dependent": refused("E1004", "an index that is an element of a tensor"),
        "scan": refused("E1004", "`te.scan`"),
        "reducer": refused("E1004", "`te.comm_reducer`"),
        "half": refused("E1004", "elements of type `float16`"),
        "no_sizes": unsafe("E1003", "there are no sizes"),
        "outer_tensor": unsafe("E1001", "i must be below n"),
        "python_conditional": refused("E1004", "Python's conditional"),
    },
    "cfdlang": {
        "outer": safe("c", lambda a, b: np.outer(a, b), a=(3,), b=(5,)),
        "contraction": safe("C", lambda A, B: A @ B, A=(3, 5), B=(5, 2)),
        "contraction_of_two": safe("C", lambda A, B: A @ B, A=(3, 5), B=(5, 2)),
        "trace": safe("s", lambda A: np.trace(A), A=(5, 5)),
        "interpolation": safe("v", interpolation, S=(3, 4), u=(4, 4, 4)),
        "interpolation_wrong": unsafe("E1002", "dimension 5 has 4 elements, and dimension 8 has 5"),
        "helmholtz": safe("v", helmholtz, S=(4, 4), D=(4, 4, 4), u=(4, 4, 4)),
        "three_together": safe("d", lambda a, b, c: np.einsum("ij,j,jk->ik", a, b, c), a=(3, 5), b=(5,), c=(5, 2)),
        "sum_of_one": safe("b", lambda a: a.sum(axis=1), a=(3, 5)),
        "transposition": safe("B", lambda A: A.transpose(2, 1, 0), A=(2, 3, 5)),
        "two_transpositions": safe("B", lambda A: A.swapaxes(0, 1).swapaxes(1, 2), A=(2, 3, 5)),
        "addition": safe("c", lambda a, b: a + b, a=(3, 5), b=(3, 5)),
        "subtraction": safe("c", lambda a, b, d: a - (b - d), a=(7,), b=(7,), d=(7,)),
        "multiplication": safe("c", lambda a, b: a * b, a=(3, 5), b=(3, 5)),
        "division": safe("c", lambda a, b, d: a / (b / d), a=(7,), b=(7,), d=(7,)),
        "scaling": safe("c", lambda s, a: s * a, s=(), a=(3, 5)),
        "division_by_scalar": safe("c", lambda s, a: a / s, s=(), a=(3, 5)),
        "number": safe("c", lambda a: 2 * a, a=(7,)),
        "precedence": safe("c", lambda a, b, d: a + b * d, a=(7,), b=(7,), d=(7,)),
        "parentheses": safe("c", lambda a, b, d: a - b - d, a=(7,), b=(7,), d=(7,)),
        "stack": safe("c", lambda a, b, d: np.stack([a, b, d]), a=(5,), b=(5,), d=(5,)),
        "nested_stack": safe("c", lambda a, b: np.stack([np.stack([a, b]), np.stack([b, a])]), a=(5,), b=(5,)),
        "stack_of_numbers": safe("c", lambda a: a * [1, 2, 3], a=(3,)),
        "type_name": safe("c", lambda a, b: a + b, a=(3, 5), b=(3, 5)),
        "elements_last": safe("v", lambda A, u: A @ u, A=(3, 5), u=(5, 4)),
        "elements_first": safe("v", lambda A, u: u @ A.T, A=(3, 5), u=(4, 5)),
        "elements_between": unsafe("E1002", "`v` has no elements, and is computed from one that has"),
        "reassigned": safe("c", lambda a: 4 * a * a, a=(7,)),
        "input_output": safe("x", lambda x, a: x + a, x=(7,), a=(7,)),
        "unmarked": safe(["b", "c"], lambda a: [a + a, (a + a) * a], a=(7,)),
        "two_outputs": safe(["b", "c"], lambda a: [a + a, a @ a], a=(7,)),
        "assigned_wrong": unsafe("E1002", "a value of shape [3 5] is assigned to `c`"),
        "added_wrong": unsafe("E1002", "operands of shapes [3 5] and [5 3]"),
        "position_wrong": unsafe("E1002", "there is no dimension 2"),
        "scalar_product": unsafe("E1002", "an outer product with a scalar"),
        "stack_wrong": unsafe("E1002", "the parts of a stack have shapes [3] and [5]"),
        "uninitialised": unsafe("E0212", "`t` is read before anything is assigned to it"),
        "named_size": refused("E1004", "a size that is no number"),
        "undeclared": refused("E0201", "`b` is not declared"),
        "gradient": safe("g", gradient, D=(4, 4), u=(4, 4, 4)),
    },
    "einsum": {
        "matmul": safe("result", lambda a, b: np.einsum("ij,jk->ik", a, b), a=(3, 5), b=(5, 2)),
        "implicit": safe("result", lambda a, b: np.einsum("kj,ik", a, b), a=(5, 3), b=(2, 5)),
        "trace": safe("result", lambda a: np.einsum("ii->", a), a=(5, 5)),
        "diagonal": safe("result", lambda a: np.einsum("ii->i", a), a=(5, 5)),
        "transpose": safe("result", lambda a: np.einsum("ijk->kij", a), a=(2, 3, 5)),
        "row_sums": safe("result", lambda a: np.einsum("ij->i", a), a=(3, 5)),
        "total": safe("result", lambda a: np.einsum("ij->", a), a=(3, 5)),
        "inner": safe("result", lambda a, b: np.einsum("i,i", a, b), a=(7,), b=(7,)),
        "outer": safe("result", lambda a, b: np.einsum("i,j->ij", a, b), a=(3,), b=(5,)),
        "hadamard": safe("result", lambda a, b: np.einsum("ij,ij->ij", a, b), a=(3, 5), b=(3, 5)),
        "batch": safe("result", lambda a, b: np.einsum("bij,bjk->bik", a, b), a=(2, 3, 5), b=(2, 5, 4)),
        "bilinear": safe("result", lambda a, b, c: np.einsum("i,ij,j->", a, b, c), a=(3,), b=(3, 5), c=(5,)),
        "chain": safe("result", lambda a, b, c, d: np.einsum("ij,jk,kl,lm->im", a, b, c, d), a=(2, 3), b=(3, 4), c=(4, 5), d=(5, 2)),
        "ellipsis": safe("result", lambda a, b: np.einsum("...ij,...jk->...ik", a, b), a=(2, 3, 5), b=(2, 5, 4)),
        "ellipsis_stretched": safe("result", lambda a, b: np.einsum("...i,...i->...", a, b), a=(4, 2, 7), b=(2, 7)),
        "ellipsis_of_nothing": safe("result", lambda a, b: np.einsum("i...,...i->i", a, b), a=(7,), b=(7,)),
        "stretched": safe("result", lambda a, b: np.einsum("ij,ij->ij", a, b), a=(3, 1), b=(3, 5)),
        "capitals": safe("result", lambda a, b: np.einsum("Ab,bC->AC", a, b), a=(3, 5), b=(5, 2)),
        "blanks": safe("result", lambda a, b: np.einsum("i j , j k -> i k", a, b), a=(3, 5), b=(5, 2)),
        "mttkrp": safe("result", lambda a, b, c: np.einsum("ikl,lj,kj->ij", a, b, c), a=(2, 3, 5), b=(5, 4), c=(3, 4)),
        "reshaped": safe("result", lambda a, b: a @ b, a=(3, 4), b=(4, 3)),
        "random": safe("result", lambda a, b: a @ b, a=(3, 5), b=(5, 2)),
        "lists": safe("result", lambda a, b: np.sum(a * b), a=(2, 3), b=(2, 3)),
        "symbolic": safe("result", lambda a, b: a @ b, a=(3, 5), b=(5, 2)),
        "symbolic_wrong": unsafe("E1002", "`j` has two sizes: dimension 2 of `a` is k, dimension 1 of `b` is n"),
        "annotated": safe("result", lambda a, b: a @ b, a=(3, 5), b=(5, 2)),
        "commented": safe("result", lambda a, b: a @ b, a=(3, 5), b=(5, 2)),
        "commented_wrong": unsafe("E1002", "`j` has two sizes: dimension 2 of `a` is 5, dimension 1 of `b` is 4"),
        "unknown": safe("result", lambda a, b: a @ b, a=(3, 5), b=(5, 2)),
        "half_known": safe("result", lambda a, b: a @ b, a=(3, 5), b=(5, 2)),
        "shape_of": safe("result", lambda a, b: a @ b, a=(3, 5), b=(5, 2)),
        "torch": safe("result", lambda a, b: a @ b, a=(3, 5), b=(5, 2)),
        "jax": safe("result", lambda a, b: a @ b, a=(3, 5), b=(5, 2)),
        "imported": unsafe("E1002", "`j` has two sizes"),
        "sizes": unsafe("E1002", "`j` has two sizes: dimension 2 of `a` is 5, dimension 1 of `b` is 4"),
        "diagonal_wrong": unsafe("E1002", "`i` has two sizes: dimension 1 of `a` is 3, dimension 2 of `a` is 5"),
        "rank": unsafe("E1005", "operand 0 has 3 dimensions, but its subscripts are for 2"),
        "operands": unsafe("E1005", "the subscripts are for 2 operands, but there is 1"),
        "output_unknown": unsafe("E1005", "index l of the output is in no operand"),
        "output_twice": unsafe("E1005", "index i stands twice in the output"),
        "character": unsafe("E1005", "an index is a letter"),
        "syntax": refused("E0103", "this is not Python"),
    },
}

if __name__ == "__main__":
    text = json.dumps(KERNELS, indent=1, ensure_ascii=False)
    (Path(__file__).parent / "expected.json").write_text(text + "\n")
