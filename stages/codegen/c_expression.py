"""C expressions without the parentheses that C's own precedence makes redundant.

TVM's printer puts every operation in parentheses: `((x * 4) + y)`. People read the emitted C, so each expression is
parsed and printed anew with the parentheses that meaning needs, and those that GCC's -Wall asks for (`a + (b << c)`).
The order of evaluation never changes: `a + (b + c)` keeps its parentheses.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

_TOKEN = re.compile(
    r"""\s*(?:
        (?P<number>0[xX][0-9a-fA-F]+[uUlL]*|(?:\d+\.\d*|\.\d+|\d+)(?:[eE][+-]?\d+)?[uUlLfF]*)
      | (?P<name>[A-Za-z_]\w*)
      | (?P<symbol><<|>>|<=|>=|==|!=|&&|\|\||\+\+|--|[-+*/%&|^~!<>=?:,()\[\]])
    )""",
    re.VERBOSE,
)
_TYPES = {"void", "char", "bool", "_Bool", "float", "double", "int", "size_t"} | {
    f"{sign}int{bits}_t" for sign in ("", "u") for bits in (8, 16, 32, 64)
}
_BINARY = {
    "*": 10, "/": 10, "%": 10, "+": 9, "-": 9, "<<": 8, ">>": 8, "<": 7, "<=": 7, ">": 7, ">=": 7, "==": 6, "!=": 6,
    "&": 5, "^": 4, "|": 3, "&&": 2, "||": 1,
}  # fmt: skip
_TERNARY, _ASSIGN, _UNARY, _POSTFIX = 0, -1, 11, 12
_ARITHMETIC, _COMPARISON, _LOGICAL = {"*", "/", "%", "+", "-"}, {"<", "<=", ">", ">=", "==", "!="}, {"&&", "||"}


class NotUnderstood(ValueError):
    """The text is not an expression of the subset that TVM prints."""


@dataclass(frozen=True)
class _Node:
    """`text` is printed, `level` its outermost operator's precedence; if binary also `operator`, `left`, `right`."""

    text: str
    level: int
    operator: str = ""
    left: str = ""
    right: _Node | None = None


def simplify(expression: str) -> str:
    """The expression with the parentheses that it needs. Raises NotUnderstood for what TVM never prints."""
    parser = _Parser(_tokens(expression))
    node = parser.expression(_ASSIGN)
    if parser.position != len(parser.tokens):
        raise NotUnderstood(expression)
    return node.text


def _tokens(text: str) -> list[str]:
    out, position = [], 0
    text = text.rstrip()
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise NotUnderstood(text)
        out.append(match[match.lastgroup or 0])
        position = match.end()
    return out


class _Parser:
    def __init__(self, tokens: Sequence[str]) -> None:
        self.tokens = tokens
        self.position = 0

    def peek(self, ahead: int = 0) -> str:
        index = self.position + ahead
        return self.tokens[index] if index < len(self.tokens) else ""

    def take(self, expected: str = "") -> str:
        token = self.peek()
        if not token or (expected and token != expected):
            raise NotUnderstood(" ".join(self.tokens))
        self.position += 1
        return token

    def expression(self, minimum: int) -> _Node:
        """Everything whose operators bind at least as tightly as `minimum`."""
        left = self.prefix()
        while True:
            token = self.peek()
            if token in _BINARY and _BINARY[token] >= max(minimum, 1):
                self.take()
                left = _binary(left, token, self.expression(_BINARY[token] + 1))
            elif token == "?" and minimum <= _TERNARY:
                left = self.ternary(left)
            elif token == "=" and minimum <= _ASSIGN:
                self.take()
                left = _assign(left, self.expression(_ASSIGN))
            else:
                return left

    def ternary(self, condition: _Node) -> _Node:
        self.take("?")
        yes = self.expression(_TERNARY)
        self.take(":")
        no = self.expression(_TERNARY)
        return _Node(f"{_wrap(condition, 1)} ? {_wrap(yes, 1)} : {_wrap(no, _TERNARY)}", _TERNARY)

    def prefix(self) -> _Node:
        token = self.peek()
        if token in {"-", "~", "!", "&", "*"}:
            self.take()
            operand = self.expression(_UNARY)
            if token == "&" and operand.text.endswith("[0]"):
                return _Node(operand.text.removesuffix("[0]"), operand.level)
            gap = " " if operand.text[:1] == token else ""
            return _Node(f"{token}{gap}{_wrap(operand, _UNARY)}", _UNARY)
        if token == "(" and self.cast_type():
            name = self.cast_type()
            self.position += 2 + len(name.split())
            return _Node(f"({name}){_wrap(self.expression(_UNARY), _UNARY)}", _UNARY)
        return self.postfix(self.primary())

    def cast_type(self) -> str:
        """The type in parentheses that starts here, or ''."""
        words, ahead = [], 1
        while self.peek(ahead) in _TYPES or self.peek(ahead) in {"const", "unsigned", "*"}:
            words.append(self.peek(ahead))
            ahead += 1
        return " ".join(words) if words and self.peek(ahead) == ")" else ""

    def primary(self) -> _Node:
        token = self.take()
        if token == "(":
            inner = self.expression(_ASSIGN)
            self.take(")")
            return inner
        if token[0].isalnum() or token[0] in "_.":
            return _Node(token, _POSTFIX)
        raise NotUnderstood(" ".join(self.tokens))

    def postfix(self, node: _Node) -> _Node:
        while self.peek() in {"[", "("}:
            base = _wrap(node, _POSTFIX)
            if self.take() == "[":
                node = _Node(f"{base}[{self.expression(_ASSIGN).text}]", _POSTFIX)
                self.take("]")
            else:
                node = _Node(f"{base}({', '.join(self.arguments())})", _POSTFIX)
        return node

    def arguments(self) -> list[str]:
        out: list[str] = []
        while self.peek() != ")":
            out.append(self.expression(_ASSIGN).text)
            if self.peek() == ",":
                self.take()
        self.take(")")
        return out


def _wrap(node: _Node, minimum: int) -> str:
    return node.text if node.level >= minimum else f"({node.text})"


def _binary(left: _Node, operator: str, right: _Node) -> _Node:
    level = _BINARY[operator]
    text = f"{_operand(left, operator, level)} {operator} {_operand(right, operator, level + 1)}"
    return _Node(text, level, operator, left.text, right)


def _assign(target: _Node, value: _Node) -> _Node:
    """`sum += x` for `sum = sum + x`."""
    if value.operator in {"+", "-"} and value.left == target.text and value.right is not None:
        return _Node(f"{target.text} {value.operator}= {value.right.text}", _ASSIGN)
    return _Node(f"{target.text} = {value.text}", _ASSIGN)


def _operand(node: _Node, parent: str, minimum: int) -> str:
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
