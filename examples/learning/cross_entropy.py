"""The mean cross entropy of a batch of logits against target distributions."""

import numpy as np


def cross_entropy(logits: np.ndarray, targets: np.ndarray) -> float:
    z = logits - logits.max(axis=1, keepdims=True)
    log_probs = z - np.log(np.sum(np.exp(z), axis=1, keepdims=True))
    return -np.mean(np.sum(targets * log_probs, axis=1))
