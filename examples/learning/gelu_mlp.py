"""Two dense layers with the GELU between them."""

import numpy as np

ROOT = np.sqrt(2 / np.pi)


def gelu(x: np.ndarray) -> np.ndarray:
    return 0.5 * x * (1 + np.tanh(ROOT * (x + 0.044715 * x**3)))


def gelu_mlp(x: np.ndarray, U: np.ndarray, u: np.ndarray, V: np.ndarray, v: np.ndarray) -> np.ndarray:
    return gelu(x @ U + u) @ V + v
