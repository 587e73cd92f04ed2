"""Nussinov's algorithm: the most pairs of bases that a strand of RNA can fold into."""

import numpy as np


def nussinov(bases: np.ndarray) -> np.ndarray:
    n = len(bases)
    t = np.zeros((n, n))
    for i in range(n - 1, -1, -1):
        for j in range(i + 1, n):
            pair = i < j - 1 and bases[i] + bases[j] == 3
            t[i, j] = max(t[i + 1, j - 1] + pair, np.max(t[i, i:j] + t[i + 1 : j + 1, j]))
    return t
