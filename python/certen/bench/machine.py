"""What everybody gets: the same cores, the same instruction set, memory that stays.

Libraries read most of it from their environment when they are loaded, so a worker is started with it.
"""

from __future__ import annotations

import os
from pathlib import Path

# The bytes of the longest vectors.
CPUS = {"sse2": 16, "avx2": 32, "avx512": 64}

# For each set that everybody can be limited to, how each library is told.
LIMITS = {
    "avx2": {
        "CERTEN_CPU": "avx2",
        "OPENBLAS_CORETYPE": "Haswell",
        "NUMBA_CPU_NAME": "haswell",
        "NUMBA_CPU_FEATURES": "+avx2,+fma",
        "ATEN_CPU_CAPABILITY": "avx2",
        "MKL_ENABLE_INSTRUCTIONS": "AVX2",
        "ONEDNN_MAX_CPU_ISA": "AVX2",
    }
}

# Whose products choose their instructions themselves. XLA's flag `--xla_cpu_max_isa=AVX2` is for its own code:
# with it, a product of f32 matrices took two thirds of the least time that is possible with AVX2.
UNLIMITED = ("jax",)

_THREADS = (
    "CERTEN_THREADS",
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMBA_NUM_THREADS",
    "HL_NUM_THREADS",
    "TVM_NUM_THREADS",
)


def features() -> frozenset[str]:
    """What the processor has, where the system tells."""
    try:
        about = Path("/proc/cpuinfo").read_text()
    except OSError:
        return frozenset()
    line = next((line for line in about.splitlines() if line.startswith("flags")), "")
    return frozenset(line.partition(":")[2].split())


def widest() -> str:
    """The instruction set with the longest vectors that this processor has."""
    if {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"} <= features():
        return "avx512"
    return "avx2" if {"avx2", "fma"} <= features() else "sse2"


def unlimited(entrant: str, cpu: str | None) -> str | None:
    """Why an entrant cannot take part if everybody is limited to an instruction set."""
    if cpu is None or entrant not in UNLIMITED or CPUS[cpu] >= CPUS[widest()]:
        return None
    return f"its products cannot be limited to {cpu}"


def model() -> str:
    """What the processor calls itself."""
    try:
        about = Path("/proc/cpuinfo").read_text()
    except OSError:
        return "unknown"
    line = next((line for line in about.splitlines() if line.startswith("model name")), ":unknown")
    return line.partition(":")[2].strip()


def environment(threads: int, cpu: str | None) -> dict[str, str]:
    """The variables of a worker; `cpu` limits everybody to an instruction set."""
    limits = LIMITS[cpu] if cpu else {}
    # By itself, XLA makes do with shorter vectors than there are.
    flags = [f"--xla_cpu_prefer_vector_width={8 * CPUS[widest()]}"]
    if threads == 1:
        flags.append("--xla_cpu_multi_thread_eigen=false")
    return {
        **os.environ,
        **dict.fromkeys(_THREADS, str(threads)),
        **limits,
        "XLA_FLAGS": " ".join(flags),
        "JAX_PLATFORMS": "cpu",
        # Libraries that allocate their results get memory that was there before: faults would be theirs alone.
        "MALLOC_MMAP_MAX_": "0",
        "MALLOC_TRIM_THRESHOLD_": str(1 << 36),
        "MALLOC_ARENA_MAX": "1",
    }
