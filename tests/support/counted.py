"""What each part of a kernel's code takes, found anew: `python -m tests.support.counted rv64-rvp`.

For rv64-rvp, rv32-rvp and cortex-m55: non-negative least squares of the relative errors over the layers of the target's
cost table, for the parts that `gemm_cost.work` of its kernels counts. Prints each number beside the project's, and how
far both are off.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from statistics import median

import numpy as np

from stages.calibrate.cases import Case, cases
from stages.calibrate.close import graphs_of
from stages.calibrate.grid import awkward, grid
from stages.kernels.mve import gemm_cost as mve
from stages.kernels.mve.gemm import rows_at_a_time
from stages.kernels.rvp import gemm_cost as rvp
from stages.tensorize import cost_table
from stages.tensorize.costs import read_file
from tests.support.emitted import ROOT, target_named

KERNELS = ("rvp.gemm_s8", "rvp.dot_s8", "mve.gemm_s8", "mve.dot_s8")
GIVEN = ("loop", "unstaged", "once", "lowered")  # counted by instructions, or of no layer of the tables


def measured(name: str) -> Iterator[tuple[Case, int]]:
    """Cases of the table's layers, each once, and what they took."""
    target = target_named(name)
    raw, seen = read_file(cost_table(target.core, ROOT)), set[tuple[str, str]]()
    for one in cases([*grid(), *graphs_of(raw.get("close", ()))], target, list(awkward())):
        took = raw["layers"].get(one.signature, {}).get(one.variant)
        if one.kernel.name in KERNELS and took and (one.signature, one.variant) not in seen:
            seen.add((one.signature, one.variant))
            yield one, took[0]


def parts_of(one: Case, lanes: int) -> Counter[str]:
    """How often each part runs for a case."""
    if one.kernel.name.startswith("rvp."):
        return rvp.work(one.kernel.seen(one.view), one.params.mr, lanes)
    view = one.kernel.seen(one.view)
    return mve.work(view, rows_at_a_time(view, one.params))


def main(name: str) -> None:
    from scipy.optimize import nnls

    lanes = target_named(name).word_bits // 32
    known: Mapping[str, float] = mve._COUNTED if name.startswith("cortex") else {"loop": 1.0, **rvp._COUNTED[lanes]}
    found = [(parts_of(one, lanes), took) for one, took in measured(name)]
    free = sorted({part for parts, _ in found for part in parts} - {*GIVEN})
    matrix = np.array([[parts[part] / took for part in free] for parts, took in found])
    rest = np.array([1 - sum(parts[one] * known.get(one, 0.0) for one in GIVEN) / took for parts, took in found])
    solved, _ = nnls(matrix, rest)
    own = [abs(sum(count * known.get(part, 0.0) for part, count in parts.items()) / took - 1) for parts, took in found]
    for part, number, layers in zip(free, solved, (matrix > 0).sum(0), strict=True):
        print(f"{part:16} {number:8.1f}   project {known.get(part, 0.0):8.1f}   {layers} layers")
    anew = median(np.abs(matrix @ solved - rest))
    print(f"{len(found)} layers: off by {median(own):.2%}, found anew {anew:.2%} (medians)")


if __name__ == "__main__":
    main(*sys.argv[1:])
