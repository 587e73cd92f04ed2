"""A batch of least-squares problems: A^T A + ridge I and A^T y."""

import numpy as np


def normal_equations(A: np.ndarray, y: np.ndarray, ridge: float) -> tuple[np.ndarray, np.ndarray]:
    gram = A.transpose(0, 2, 1) @ A + ridge * np.eye(A.shape[2])
    rhs = np.einsum("pmi,pm->pi", A, y)
    return gram, rhs
