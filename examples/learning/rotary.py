"""Rotary position embedding of pairs."""

import numpy as np


def rotary(x: np.ndarray, base: float) -> np.ndarray:
    t, h, d, _ = x.shape
    angle = np.arange(t)[:, None] / base ** (np.arange(d) / d)
    cos = np.cos(angle)[:, None, :]
    sin = np.sin(angle)[:, None, :]
    u = x[..., 0]
    v = x[..., 1]
    return np.stack([u * cos - v * sin, u * sin + v * cos], axis=-1)
