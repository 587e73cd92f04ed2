"""The wave equation on a membrane that is held at its border."""

import numpy as np


def wave2d(u0: np.ndarray, u1: np.ndarray, c: float, steps: int) -> tuple[np.ndarray, np.ndarray]:
    before, now = u0, u1
    for _ in range(steps):
        around = now[:-2, 1:-1] + now[2:, 1:-1] + now[1:-1, :-2] + now[1:-1, 2:]
        inner = now[1:-1, 1:-1]
        after = now.copy()
        after[1:-1, 1:-1] = 2 * inner - before[1:-1, 1:-1] + c * (around - 4 * inner)
        before, now = now, after
    return before, now
