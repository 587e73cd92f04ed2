"""The QR factorization by modified Gram-Schmidt."""

import numpy as np


def gramschmidt(A: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    n = A.shape[1]
    Q, R = A.copy(), np.zeros((n, n))
    for k in range(n):
        R[k, k] = np.linalg.norm(Q[:, k])
        Q[:, k] /= R[k, k]
        R[k, k + 1 :] = Q[:, k] @ Q[:, k + 1 :]
        Q[:, k + 1 :] -= np.outer(Q[:, k], R[k, k + 1 :])
    return Q, R
