"""The shortest distances between all pairs of places (Floyd and Warshall)."""

import numpy as np


def shortest_paths(D0: np.ndarray) -> np.ndarray:
    D = D0
    for k in range(len(D)):
        D = np.minimum(D, D[:, k, None] + D[None, k, :])
    return D
