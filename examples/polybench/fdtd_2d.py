"""Electric and magnetic fields in two dimensions, by finite differences in time."""

import numpy as np


def fdtd_2d(
    ex0: np.ndarray, ey0: np.ndarray, hz0: np.ndarray, border: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    ex, ey, hz = ex0.copy(), ey0.copy(), hz0.copy()
    for value in border:
        ey[0] = value
        ey[1:] -= 0.5 * (hz[1:] - hz[:-1])
        ex[:, 1:] -= 0.5 * (hz[:, 1:] - hz[:, :-1])
        hz[:-1, :-1] -= 0.7 * (ex[:-1, 1:] - ex[:-1, :-1] + ey[1:, :-1] - ey[:-1, :-1])
    return ex, ey, hz
