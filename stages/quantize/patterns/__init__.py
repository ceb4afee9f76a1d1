"""How operators' bodies look and what becomes of them: one module per family.

Every family is a table {operator of the TFLite schema: function}. The function matches the body that import and layout
made (`stages.quantize.operator`), and appends integer layers to the graph (`stages.quantize.writer`). A module that
joins the folder is found by its `FAMILY`.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Iterator
from importlib import import_module

from stages.ir.operators.table import OPERATORS
from stages.ir.relax_module import CONSTANT, LAYOUT
from stages.quantize.operator import Operator
from stages.quantize.writer import GraphWriter

Family = Callable[[Operator, GraphWriter], None]


def _families() -> Iterator[tuple[str, Family]]:
    for entry in pkgutil.iter_modules(__path__):
        yield from getattr(import_module(f"{__name__}.{entry.name}"), "FAMILY", {}).items()


FAMILIES: dict[str, Family] = dict(_families())


def family_of(op: str) -> Family | None:
    """What lowers the operator: Firmline's own, or what a plug-in declares; None where nothing does."""
    if op in FAMILIES:
        return FAMILIES[op]
    return OPERATORS[op].legalize if op in OPERATORS else None


# Operators that only move data, the same for every type; two of them no file has.
MOVES = frozenset({LAYOUT, CONSTANT, *(name for name, operator in OPERATORS.items() if operator.moves)})
