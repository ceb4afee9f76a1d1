"""How operators' bodies look and what becomes of them: one module per family.

Every family is a table {operator of the TFLite schema: function}. The function matches the body that import and layout
made (`stages.quantize.operator`), and appends integer layers to the graph (`stages.quantize.writer`).
"""

from __future__ import annotations

from collections.abc import Callable

from stages.quantize.operator import Operator
from stages.quantize.patterns import activations, arithmetic, convolution, edges, moves, pooling, reductions
from stages.quantize.writer import GraphWriter

Family = Callable[[Operator, GraphWriter], None]

FAMILIES: dict[str, Family] = {
    **convolution.FAMILY,
    **arithmetic.FAMILY,
    **activations.FAMILY,
    **pooling.FAMILY,
    **reductions.FAMILY,
    **moves.FAMILY,
    **edges.FAMILY,
}

# Operators that only move data: the same for every type.
MOVES = frozenset(moves.FAMILY)
