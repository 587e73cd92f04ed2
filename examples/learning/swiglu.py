"""A gated feed-forward block with root-mean-square normalisation and a residual."""

import numpy as np


def swiglu(x: np.ndarray, gain: np.ndarray, gate: np.ndarray, up: np.ndarray, down: np.ndarray) -> np.ndarray:
    y = x / np.sqrt(np.mean(x**2, axis=-1, keepdims=True) + 1e-6) * gain
    g = y @ gate
    return x + g / (1 + np.exp(-g)) * (y @ up) @ down
