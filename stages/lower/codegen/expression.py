"""C expressions with the parentheses that they need.

An expression is text and the precedence of its outermost operator. Parentheses are printed where the meaning needs
them, and around each operand with an operator of another precedence (`a + (b * c)`, MISRA C:2012 rule 12.1). The order
of evaluation never changes: `a + (b + c)` keeps its parentheses.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

_BINARY = {
    "*": 10, "/": 10, "%": 10, "+": 9, "-": 9, "<<": 8, ">>": 8, "<": 7, "<=": 7, ">": 7, ">=": 7, "==": 6, "!=": 6,
    "&": 5, "^": 4, "|": 3, "&&": 2, "||": 1,
}  # fmt: skip
_TERNARY, _UNARY, _POSTFIX = 0, 11, 12
_ARITHMETIC, _LOGICAL = {"*", "/", "%", "+", "-"}, {"&&", "||"}


@dataclass(frozen=True)
class C:
    """An expression: `text`, and `level`, the precedence of its outermost operator.

    Binary expressions also have `operator`, `left` and `right`.
    """

    text: str
    level: int = _POSTFIX
    operator: str = ""
    left: str = ""
    right: C | None = None


def number(text: str) -> C:
    """Return a literal, which may be negative."""
    return C(text, _UNARY if text.startswith("-") else _POSTFIX)


def binary(left: C, operator: str, right: C) -> C:
    """Return `left operator right`, which is left-associative."""
    level = _BINARY[operator]
    text = f"{_operand(left, operator, level)} {operator} {_operand(right, operator, level + 1)}"
    return C(text, level, operator, left.text, right)


def negated(operand: C) -> C:
    """Return `!operand`."""
    return C(f"!{_wrap(operand, _UNARY)}", _UNARY)


def cast(ctype: str, operand: C) -> C:
    """Return `(ctype)operand`."""
    return C(f"({ctype}){_wrap(operand, _UNARY)}", _UNARY)


def choice(condition: C, yes: C, no: C) -> C:
    """Return `condition ? yes : no`."""
    condition_text, yes_text, no_text = (_wrap(operand, _UNARY) for operand in (condition, yes, no))
    return C(f"{condition_text} ? {yes_text} : {no_text}", _TERNARY)


def element(array: str, index: C) -> C:
    """Return `array[index]`."""
    return C(f"{array}[{index.text}]")


def address(array: str, index: C) -> C:
    """Return `array` or `&array[index]`."""
    return C(array) if index.text == "0" else C(f"&{array}[{index.text}]", _UNARY)


def call(function: str, arguments: Sequence[C]) -> C:
    """Return `function(a, b)`."""
    return C(f"{function}({', '.join(argument.text for argument in arguments)})")


def assignment(target: str, value: C) -> str:
    """Return `target = value;`, or `target += x;` if the value is the target plus or minus x."""
    if value.operator in {"+", "-"} and value.left == target and value.right is not None:
        return f"{target} {value.operator}= {value.right.text};"
    return f"{target} = {value.text};"


def _wrap(node: C, minimum: int) -> str:
    return node.text if node.level >= minimum else f"({node.text})"


def _operand(node: C, parent: str, minimum: int) -> str:
    """Return the operand's text, in parentheses if needed.

    None are needed if both operators are of one kind: `a + b - c`, `a && b && c`.
    """
    if node.level < minimum or (node.operator and not _plain(node.operator, parent)):
        return f"({node.text})"
    return node.text


def _plain(child: str, parent: str) -> bool:
    if parent in _ARITHMETIC and child in _ARITHMETIC:
        return _BINARY[child] == _BINARY[parent]
    return parent in _LOGICAL and child == parent
