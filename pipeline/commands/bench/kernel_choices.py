"""Quality of kernel selection for sampled layers: which are over 5 % slower than possible."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from stages.support.messages import escape

if TYPE_CHECKING:
    from stages.delivery.bench.choice_quality import ChoiceQuality


def print_kernel_choices(results: Mapping[str, Sequence[ChoiceQuality]]) -> int:
    """Print the layers with a slow choice, by target. Returns their number."""
    from stages.delivery.bench.choice_quality import TOLERANCE

    total = 0
    for target, layers in results.items():
        slow = [layer for layer in layers if layer.behind > TOLERANCE]
        for layer in slow:
            chosen, best = (escape.line(", ".join(calls)) for calls in (layer.calls, layer.best_calls))
            print(f"{100 * layer.behind:6.1f} % slower than the best kernel on {target}: {escape.line(layer.name)}")
            print(f"          {layer.chosen:,} instructions with {chosen}; {layer.best:,} with {best}")
        kernels = sum(layer.counted for layer in layers)
        limit = f"{100 * TOLERANCE:.0f} %"
        behind = f"{len(slow)} of {len(layers)} layers over {limit} slower than the best"
        print(f"{target}: {behind}, {kernels} kernels counted")
        total += len(slow)
    return total
