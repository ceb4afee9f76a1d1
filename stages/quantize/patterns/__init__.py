"""Legalization patterns of the operators, grouped by similarity.

Each module has a table `PATTERNS`: {operator of the TFLite schema: function}. A function matches the body from import
and layout (`stages.quantize.operator`), and appends integer layers to the graph (`stages.quantize.writer`). Modules in
this folder are loaded by themselves.
"""

import pkgutil
from collections.abc import Callable, Iterator
from importlib import import_module

from stages.ir.operators.table import OPERATORS
from stages.ir.relax_module import CONSTANT, LAYOUT
from stages.quantize.operator import Operator
from stages.quantize.writer import GraphWriter

Pattern = Callable[[Operator, GraphWriter], None]


def _patterns() -> Iterator[tuple[str, Pattern]]:
    for entry in pkgutil.iter_modules(__path__):
        yield from getattr(import_module(f"{__name__}.{entry.name}"), "PATTERNS", {}).items()


PATTERNS: dict[str, Pattern] = dict(_patterns())


def pattern_of(op: str) -> Pattern | None:
    """Legalization pattern of an operator, Firmline's or a plug-in's; None if there is none."""
    if op in PATTERNS:
        return PATTERNS[op]
    return OPERATORS[op].legalization.legalize if op in OPERATORS else None


# Operators that only move data; LAYOUT and CONSTANT do not occur in files.
MOVES = frozenset({LAYOUT, CONSTANT, *(name for name, operator in OPERATORS.items() if operator.moves)})
