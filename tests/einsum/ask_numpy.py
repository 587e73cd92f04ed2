"""Writes numpy.txt: what `numpy.einsum` makes of subscripts and shapes.

A line is `subscripts | shape | shape … = output shape`, or `= ValueError`; a scalar's shape is `()`.
Run with the NumPy that is to be asked: python tests/einsum/ask_numpy.py > tests/einsum/numpy.txt
"""

import random
import string

import numpy as np

# What people wrote by hand because it is odd.
ODD = """
ii|1,3  ii|3,1  ii|2,3  ii|0,0  ii|1,1  ii->i|1,3  ii->i|3,1  ii->i|0,0  ii->i|1,0  ii|0,1  ii|0,3  ii,i->i|1,3|3  ii,i->i|1,1|3
iii->i|1,3,1  iii|3,3,3  i,i|0|1  i,i|0|3  i,i|1|3  i,i->i|0|1  ij,jk->ik|2,1|3,4  i,i,i->i|1|3|1  i,i,i->i|1|3|4
...|2,3  ...->|2,3  ...i->i|2,3  i...->i|3  i...,i->...|2,3|2  ...,...|2,1|3  ...,...->...|2,3|4,3  ...i,...i->...|2,3|5,1,3
...ii->...|4,3,3  ...i,...i|2,3|2,3  ...->...|()  ...|()  |()  ->|()  |2  ,|()|()  ,->|()|()  i->|3  i->i|3  ->i|()  i,->i|3|()
aB|2,3  Ba|2,3  bA->|2,3  ba|2,3  ij->i->j|2,3  ij->->|2,3  ij-|2,3  ij>|2,3  ij>-ij|2,3  ij-ij|2,3  ij--ij|2,3  -ij|2,3  ->ij|2,3
i1->i|2,3  i.j|2,3  i..j|2,3  i....j|2,3,4  i......j|2,3,4  ...i...|2  ...,...->......|2|2  ...,->..|2|()  i.|2  i..|2  i...|2
i,i|2  i|2|2  i,|2  ,i|2  i,i->i,|2|2  i,i,|2|2  i->i,i|2  ij->ii|2,3  ij->k|2,3  ij->iji|2,3  ij|2  i|2,3  i...j|2  ij...|2
i->...|2  i->i...|2  i->...i|2  ij->...j|2,3  i,...->i|2|3  i,...->i|2|()  i,...->i|2|1  ...,i->i|1|2  i...->i|2,1  i...->|2,3
i...->...i|2,3  i...|2,3  b...a|2,3,4  ...ba|3,4  b...b|3,4,3
""".split("  ")
BLANKS = [" i j , j k -> i k |2,3|3,4", "i j- >ij|2,3", "ij - > ij|2,3", "ij ->ij|2,3", "i. ..j|2,3,4", " |()", " , |()|()", "i\tj|2,3"]


def ask(spec, shapes):
    try:
        return text(np.einsum(spec, *(np.ones(shape) for shape in shapes)).shape)
    except ValueError:
        return "ValueError"


def text(shape):
    return ",".join(map(str, shape)) or "()"


def line(spec, shapes):
    return f"{spec} | {' | '.join(map(text, shapes))} = {ask(spec, shapes)}"


def by_hand():
    for entry in " ".join(ODD).split() + BLANKS:
        spec, *shapes = entry.split("|")
        yield spec, [() if s == "()" else tuple(map(int, s.split(","))) for s in shapes]
    letters = string.ascii_letters
    yield letters + "->", [(1,) * 52]
    yield letters + "...->...", [(1,) * 64]
    yield letters + ",...->...", [(1,) * 52, (1,) * 12]
    yield letters + ",...->...", [(1,) * 52, (1,) * 13]
    yield "a" * 64, [(1,) * 64]
    yield "a" * 65, [(1,) * 64]
    yield ",".join("i" * 63) + "->i", [(2,)] * 63
    yield ",".join("i" * 64) + "->i", [(2,)] * 64


def random_one(draw):
    letters = draw.sample("abzABijk", draw.randint(1, 4))
    sizes = {letter: draw.choice([0, 1, 2, 3, 5]) for letter in letters}
    rest = [draw.choice([1, 2, 3]) for _ in range(draw.randint(0, 2))]
    terms, shapes = [], []
    for _ in range(draw.choice([1, 1, 2, 2, 3])):
        term = [draw.choice(letters) for _ in range(draw.randint(0, 3))]
        shape = [1 if draw.random() < 0.15 else sizes[letter] for letter in term]
        if draw.random() < 0.03:
            shape = [draw.choice([0, 1, 4]) for _ in shape]
        if draw.random() < 0.3:
            at = draw.randint(0, len(term))
            own = [1 if draw.random() < 0.3 else size for size in rest[draw.randint(0, len(rest)):]]
            term.insert(at, "...")
            shape[at:at] = own
        if draw.random() < 0.03:
            shape.append(2)
        terms.append("".join(term))
        shapes.append(tuple(shape))
    spec = ",".join(terms)
    if draw.random() < 0.6:
        used = sorted({letter for term in terms for letter in term if letter.isalpha()})
        output = draw.sample(used, draw.randint(0, len(used)))
        if draw.random() < 0.03:
            output.append(draw.choice(letters))
        if "..." in spec and draw.random() < 0.9:
            output.insert(draw.randint(0, len(output)), "...")
        spec += "->" + "".join(output)
    if draw.random() < 0.05:
        at = draw.randint(0, len(spec))
        spec = spec[:at] + draw.choice(" .->,1_") + spec[at:]
    return spec, shapes


def main():
    for spec, shapes in by_hand():
        print(line(spec, shapes))
    draw = random.Random(1)
    for _ in range(600):
        print(line(*random_one(draw)))


if __name__ == "__main__":
    main()
