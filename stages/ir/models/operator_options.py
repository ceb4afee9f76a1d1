"""Options of TFLite operators in an untrusted file.

The modules of stages.ir.operators declare the tables; field numbers are positions in them. `padding` and similar fields
are numbers of the schema's enumerations.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

from stages.ir.model_info import Options
from stages.ir.models.flatbuffer import Table
from stages.ir.operators import operation
from stages.ir.operators.table import OPERATORS

_READ: dict[str, Callable[[Table, int], Any]] = {
    "bool": lambda table, number: bool(table.scalar(number, "<B")),
    "byte": lambda table, number: table.scalar(number, "<b"),
    "int": lambda table, number: table.scalar(number, "<i"),
    "one": lambda table, number: table.scalar(number, "<i", 1),
    "float": lambda table, number: table.real(number),
    "ints": lambda table, number: tuple(int(value) for value in table.numbers(number, "<i4")),
    "unused": lambda table, number: None,
}


def number_of(table: str, name: str) -> int:
    """Return the number of a field in its table."""
    return [field for field, _ in tables()[table].kinds].index(name)


def read_options(operator: Table, op: str, what: str) -> Options | None:
    """Return the options of an operator table of type `op`; None without options.

    Raises Corrupt for an invalid table.
    """
    number, table = operator.scalar(3, "<B"), operator.table(4, what)
    if not number or table is None:
        return None
    name = _names().get(number, f"table {number}")
    declared = tables().get(name) or (OPERATORS[op].table if op in OPERATORS else None)
    kinds = declared.kinds if declared is not None and declared.name == name else ()
    return Options(name, {key: _READ[kind](table, i) for i, (key, kind) in enumerate(kinds) if key})


@cache
def tables() -> dict[str, operation.Table]:
    """Return the options tables of built-in operators, by name."""
    return {operator.table.name: operator.table for operator in OPERATORS.values() if operator.table is not None}


@cache
def _names() -> dict[int, str]:
    from ai_edge_litert.schema_py_generated import BuiltinOptions

    return {code: name for name, code in vars(BuiltinOptions).items() if isinstance(code, int)}
