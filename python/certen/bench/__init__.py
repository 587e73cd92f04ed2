"""Certen beside other compilers and libraries, in one run: `python -m certen.bench --help`.

- `kernels`, `contractions`, `ported` and `small`: what is computed; `hand`: Certen's schedules by hand;
- `peers`: how each library computes it; `worker`: one of them, in a process of its own;
- `measure`: all of them in turns; `machine`: what everybody gets; `limits`: what the machine can do at most;
- `statistics` and `report`: what is made of the times.
"""
