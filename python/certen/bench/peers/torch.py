"""PyTorch, eager: its own kernels, into an array that is there already where it allows it."""

# mypy: ignore-errors

import torch
import torch.nn.functional as functional

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


def _einsum(p, u, out):
    return torch.einsum("ia,jb,kc,eabc->eijk", p, p, p, u)


def _three_products(p, u, out):
    e, n = u.shape[0], p.shape[0]
    t = (u.reshape(-1, n) @ p.T).view(e * n, n, n)
    t = torch.matmul(p, t).view(e, n, n * n)
    return torch.matmul(p, t).view(u.shape)


def _kronecker_of_two(p, u, out):
    e, n = u.shape[0], p.shape[0]
    return torch.matmul(p, (u.reshape(-1, n * n) @ torch.kron(p, p).T).view(e, n, n * n)).view(u.shape)


def _kronecker_batched(p, u, out):
    e, n = u.shape[0], p.shape[0]
    t = (u.reshape(-1, n * n) @ torch.kron(p, p).T).view(e, n, n * n)
    torch.bmm(p.expand(e, n, n), t, out=out.view(e, n, n * n))


def _kronecker_of_three(p, u, out):
    n = p.shape[0]
    torch.mm(u.view(-1, n**3), torch.kron(p, torch.kron(p, p)).T, out=out.view(-1, n**3))


def _helm(modes):
    return lambda s, d, u, out: modes(s.T.contiguous(), modes(s, u, out).mul(d), out)


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


_INTERP = {"einsum": _einsum, "three products": _three_products, "Kronecker of two": _kronecker_of_two}

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
    "interp": {**_INTERP, "Kronecker, batched": _kronecker_batched, "Kronecker of three": _kronecker_of_three},
    "helm": {name: _helm(modes) for name, modes in _INTERP.items()},
    "blur": {"whole": _blur, "strips": strips(_blur, 64, halo=2)},
    "coars": {"whole": _coars, "strips": strips(_coars, 32)},
}


def _calls(function):
    def formulation(task):
        torch.set_num_threads(task.threads)
        inputs, out = [torch.from_numpy(array) for array in task.inputs], torch.from_numpy(task.out)

        def run():
            found = function(*inputs, out)
            return (out if found is None else found).numpy()

        return run

    return formulation


FORMULATIONS = {
    "torch": {
        kernel: {name: _calls(function) for name, function in functions.items()}
        for kernel, functions in _FUNCTIONS.items()
    }
}
