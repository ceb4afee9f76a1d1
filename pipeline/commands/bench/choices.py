"""How well kernels are chosen for drawn layers: which get one that is over 5 % behind the best."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from stages.messages import escape

if TYPE_CHECKING:
    from stages.bench.judge import Judged


def report_choices(judged: Mapping[str, Sequence[Judged]]) -> int:
    """Print, for each target, the layers that are behind and how many there are. Returns their number."""
    from stages.bench.judge import TOLERANCE

    total = 0
    for target, layers in judged.items():
        behind = [layer for layer in layers if layer.behind > TOLERANCE]
        for layer in behind:
            chosen, best = (escape.line(", ".join(calls)) for calls in (layer.calls, layer.best_calls))
            print(f"{100 * layer.behind:6.1f} % behind on {target}: {escape.line(layer.name)}")
            print(f"          {layer.chosen:,} instructions by {chosen}; {layer.best:,} by {best}")
        counted = sum(layer.counted for layer in layers)
        limit = f"{100 * TOLERANCE:.0f} %"
        print(
            f"{target}: {len(behind)} of {len(layers)} layers over {limit} behind the best, {counted} kernels counted"
        )
        total += len(behind)
    return total
