"""Red, green and blue to luma and two differences of colour (BT.601)."""

import numpy as np

M = np.array([[0.299, 0.587, 0.114], [-0.168736, -0.331264, 0.5], [0.5, -0.418688, -0.081312]])
OFFSET = np.array([0, 128, 128])


def ycbcr(rgb: np.ndarray) -> np.ndarray:
    return rgb @ M.T + OFFSET
