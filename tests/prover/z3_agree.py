"""Asks z3 the questions of a file, and says where it disagrees.

The file is SMT-LIB 2. Questions end with `(reset)`; each begins with a comment `; expect unsat: WHAT` or
`; expect sat: WHAT`. What z3 cannot tell in ten seconds is counted, not held against anyone. Run by
`crates/certen-index/tests/z3.rs`.
"""

import re
import sys

import z3


def main(path):
    with open(path, encoding="utf-8") as file:
        questions = [text for text in file.read().split("(reset)") if text.strip()]
    wrong = undecided = 0
    for text in questions:
        expected, what = re.search(r"; expect (sat|unsat): (.*)", text).groups()
        solver = z3.Solver()
        solver.set("timeout", 10_000)
        solver.from_string(text)
        answer = str(solver.check())
        if answer == "unknown":
            undecided += 1
        elif answer != expected:
            wrong += 1
            where = f" at {solver.model()}" if answer == "sat" else ""
            print(f"z3 says {answer}{where}, not {expected}: {what}\n{text.strip()}\n")
    print(f"{len(questions)} questions, {wrong} disagreements, {undecided} undecided")
    # A z3 that decides nothing would agree with everything.
    return 1 if wrong or undecided * 20 > len(questions) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
