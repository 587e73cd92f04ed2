"""The mean of three neighbours, along rows, then along columns."""

import numpy as np


def blur(x: np.ndarray) -> np.ndarray:
    rows = (x[:, :-2] + x[:, 1:-1] + x[:, 2:]) / 3
    return (rows[:-2] + rows[1:-1] + rows[2:]) / 3
