"""Gray and Scott's reaction of two substances that diffuse, periodic."""

import numpy as np


def gray_scott(
    u0: np.ndarray, v0: np.ndarray, feed: float, kill: float, steps: int
) -> tuple[np.ndarray, np.ndarray]:
    u, v = u0, v0
    for _ in range(steps):
        reaction = u * v**2
        u, v = (
            u + 0.16 * laplacian(u) - reaction + feed * (1 - u),
            v + 0.08 * laplacian(v) + reaction - (feed + kill) * v,
        )
    return u, v


def laplacian(x: np.ndarray) -> np.ndarray:
    rows = np.roll(x, 1, axis=0) + np.roll(x, -1, axis=0)
    columns = np.roll(x, 1, axis=1) + np.roll(x, -1, axis=1)
    return rows + columns - 4 * x
