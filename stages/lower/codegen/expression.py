"""C expressions with the parentheses that they need, and no more.

An expression is text and the precedence of its outermost operator. Parentheses stand where meaning needs them, and
where GCC's -Wall asks for them or nobody knows the precedence table by heart (`a + (b << c)`). The order of evaluation
is never changed: `a + (b + c)` keeps its parentheses.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

_BINARY = {
    "*": 10, "/": 10, "%": 10, "+": 9, "-": 9, "<<": 8, ">>": 8, "<": 7, "<=": 7, ">": 7, ">=": 7, "==": 6, "!=": 6,
    "&": 5, "^": 4, "|": 3, "&&": 2, "||": 1,
}  # fmt: skip
_TERNARY, _UNARY, _POSTFIX = 0, 11, 12
_ARITHMETIC, _COMPARISON, _LOGICAL = {"*", "/", "%", "+", "-"}, {"<", "<=", ">", ">=", "==", "!="}, {"&&", "||"}


@dataclass(frozen=True)
class C:
    """`text` is printed, `level` its outermost operator's precedence; if binary also `operator`, `left`, `right`."""

    text: str
    level: int = _POSTFIX
    operator: str = ""
    left: str = ""
    right: C | None = None


def number(text: str) -> C:
    """A literal, which may be negative."""
    return C(text, _UNARY if text.startswith("-") else _POSTFIX)


def binary(left: C, operator: str, right: C) -> C:
    """`left + right`; both operands of an operator that is not commutative in C's eyes."""
    level = _BINARY[operator]
    text = f"{_operand(left, operator, level)} {operator} {_operand(right, operator, level + 1)}"
    return C(text, level, operator, left.text, right)


def negated(operand: C) -> C:
    """`!operand`"""
    return C(f"!{_wrap(operand, _UNARY)}", _UNARY)


def cast(ctype: str, operand: C) -> C:
    """`(int32_t)operand`"""
    return C(f"({ctype}){_wrap(operand, _UNARY)}", _UNARY)


def choice(condition: C, yes: C, no: C) -> C:
    """`condition ? yes : no`"""
    return C(f"{_wrap(condition, 1)} ? {_wrap(yes, 1)} : {_wrap(no, _TERNARY)}", _TERNARY)


def element(array: str, index: C) -> C:
    """`array[index]`"""
    return C(f"{array}[{index.text}]")


def address(array: str, index: C) -> C:
    """Where an element is: `array` or `&array[index]`."""
    return C(array) if index.text == "0" else C(f"&{array}[{index.text}]", _UNARY)


def call(function: str, arguments: Sequence[C]) -> C:
    """`function(a, b)`"""
    return C(f"{function}({', '.join(argument.text for argument in arguments)})")


def assignment(target: str, value: C) -> str:
    """`target = value;`, or `target += x;` where the value is the target and something more, or less."""
    if value.operator in {"+", "-"} and value.left == target and value.right is not None:
        return f"{target} {value.operator}= {value.right.text};"
    return f"{target} = {value.text};"


def _wrap(node: C, minimum: int) -> str:
    return node.text if node.level >= minimum else f"({node.text})"


def _operand(node: C, parent: str, minimum: int) -> str:
    """The operand as written: bare only where nobody has to know the precedence table by heart."""
    if node.level < minimum or (node.operator and not _plain(node.operator, parent)):
        return f"({node.text})"
    return node.text


def _plain(child: str, parent: str) -> bool:
    if parent in _ARITHMETIC or parent in _COMPARISON:
        return child in _ARITHMETIC
    if parent in _LOGICAL:
        return child in _ARITHMETIC | _COMPARISON or child == parent
    return False
