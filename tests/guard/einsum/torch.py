# Covers: PyTorch, and a list of operands.
import numpy as np

import torch

a = torch.randn(3, 5)
b = torch.zeros(5, 2)
r = torch.einsum("ij,jk->ik", [a, b])
