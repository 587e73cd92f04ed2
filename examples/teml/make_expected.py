"""Writes `expected.json`: inputs of the kernels in this folder, and what their NumPy versions give for them.

    python make_expected.py [TARGET]

As `../make_expected.py` does for the other examples, whose recipes for inputs these are.
"""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.dont_write_bytecode = True
sys.path.insert(0, str(HERE.parent))

from make_expected import positive, signed, unit, write  # noqa: E402

CASES = {
    "teml/blur": dict(x=unit(7, 5)),
    "teml/bmm": dict(A=signed(2, 3, 5), B=signed(2, 5, 7)),
    "teml/coars": dict(x=signed(5, 7), y=signed(5, 7)),
    "teml/gconv": dict(X=signed(2, 3, 2, 7, 5), W=signed(3, 5, 2, 3, 2)),
    "teml/helm": dict(S=signed(3, 3), D=positive(3, 3, 3), u=signed(2, 3, 3, 3)),
    "teml/helm_div": dict(S=signed(3, 3), D=positive(3, 3, 3), u=signed(2, 3, 3, 3)),
    "teml/interp": dict(P=signed(5, 3), u=signed(2, 3, 3, 3)),
    "teml/mm": dict(A=signed(5, 7), B=signed(7, 3)),
    "teml/mttkrp": dict(B=signed(5, 3, 7), C=signed(3, 2), D=signed(7, 2)),
    "teml/sddmm": dict(B=signed(5, 7), C=signed(5, 3), D=signed(3, 7)),
    "teml/tmm": dict(A=signed(7, 5), B=signed(7, 3)),
}


def main() -> None:
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / "expected.json"
    files = {f"teml/{path.stem}" for path in HERE.glob("*.ten")}
    assert files == set(CASES), files ^ set(CASES)
    write(CASES, target)


if __name__ == "__main__":
    main()
