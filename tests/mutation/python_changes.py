"""Small changes of Python code: operators, comparisons, constants, conditions, statements left out.

Left alone: docstrings, annotations, what only type checkers read, and the words of messages.
"""

from __future__ import annotations

import ast
import re

from tests.mutation.change import Change, neighbours

_OPERATORS = {
    ast.Add: ("+", ["-"]), ast.Sub: ("-", ["+"]), ast.Mult: ("*", ["+"]), ast.Div: ("/", ["*"]),
    ast.FloorDiv: ("//", ["*"]), ast.Mod: ("%", ["//"]), ast.LShift: ("<<", [">>"]), ast.RShift: (">>", ["<<"]),
    ast.BitAnd: ("&", ["|"]), ast.BitOr: ("|", ["&"]), ast.BitXor: ("^", ["|"]),
}  # fmt: skip
_COMPARISONS = {
    ast.Lt: ("<", ["<="]), ast.LtE: ("<=", ["<"]), ast.Gt: (">", [">="]), ast.GtE: (">=", [">"]),
    ast.Eq: ("==", ["!="]), ast.NotEq: ("!=", ["=="]), ast.In: ("in", ["not in"]), ast.NotIn: ("not in", ["in"]),
    ast.Is: ("is", ["is not"]), ast.IsNot: ("is not", ["is"]),
}  # fmt: skip
_CALLS = {"min": "max", "max": "min", "all": "any", "any": "all", "floor": "ceil", "ceil": "floor"}


def python_changes(text: str) -> list[Change]:
    """Every change of a module that this knows, in the order of the text."""
    finder = _Finder(text)
    finder.visit(ast.parse(text))
    return sorted(finder.found, key=lambda change: (change.start, change.end, change.after))


class _Finder(ast.NodeVisitor):
    def __init__(self, text: str) -> None:
        self.text, self.found = text, list[Change]()
        self.lines = [0]
        for line in text.splitlines(keepends=True):
            self.lines.append(self.lines[-1] + len(line))

    def visit(self, node: ast.AST) -> None:
        for name in ("annotation", "returns"):
            if getattr(node, name, None) is not None:
                setattr(node, name, None)
        super().visit(node)

    def visit_Expr(self, node: ast.Expr) -> None:
        if not isinstance(node.value, ast.Constant):
            self._leave_out(node)
            self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        sign, others = _OPERATORS.get(type(node.op), ("", []))
        self._between(node.target, node.value, f"{sign}=", [f"{other}=" for other in others], "operator")
        self._leave_out(node)
        self.generic_visit(node)

    def visit_Raise(self, node: ast.Raise) -> None:
        self._leave_out(node)

    def visit_Continue(self, node: ast.Continue) -> None:
        self._leave_out(node)

    def visit_Break(self, node: ast.Break) -> None:
        self._leave_out(node)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """Words of a message or a name: left alone."""

    def visit_If(self, node: ast.If) -> None:
        if not (isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"):
            self._negate(node.test)
            self.generic_visit(node)

    def visit_IfExp(self, node: ast.IfExp) -> None:
        self._negate(node.test)
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        sign, others = _OPERATORS.get(type(node.op), ("", []))
        self._between(node.left, node.right, sign, others, "operator")
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        sign, other = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
        for left, right in zip(node.values, node.values[1:], strict=False):
            self._between(left, right, sign, [other], "and/or")
        self.generic_visit(node)

    def visit_Compare(self, node: ast.Compare) -> None:
        for left, op, right in zip([node.left, *node.comparators], node.ops, node.comparators, strict=False):
            sign, others = _COMPARISONS[type(op)]
            self._between(left, right, sign, others, "comparison")
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        sign = re.match(r"-|not\s*", self.text[self._span(node)[0] :])
        if sign is not None:
            start = self._span(node)[0]
            what = "sign" if isinstance(node.op, ast.USub) else "condition"
            self.found.append(Change(start, start + len(sign[0]), "", what))
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        name = node.func
        if isinstance(name, ast.Name) and name.id in _CALLS:
            start, end = self._span(name)
            self.found.append(Change(start, end, _CALLS[name.id], "function"))
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        start, end = self._span(node)
        if isinstance(node.value, bool):
            self.found.append(Change(start, end, str(not node.value), "constant"))
        elif isinstance(node.value, int):
            self.found += neighbours(self.text[start:end], start)

    def _offset(self, line: int, column: int) -> int:
        """Of a node's line and column, the latter in bytes of UTF-8."""
        start = self.lines[line - 1]
        written = self.text[start : self.lines[line]].encode()[:column]
        return start + len(written.decode())

    def _span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        assert node.end_lineno is not None and node.end_col_offset is not None
        return self._offset(node.lineno, node.col_offset), self._offset(node.end_lineno, node.end_col_offset)

    def _between(self, left: ast.expr, right: ast.expr, sign: str, others: list[str], what: str) -> None:
        """The operator's sign, which stands alone between its operands but for parentheses and comments."""
        start, end = self._span(left)[1], self._span(right)[0]
        place = re.search(
            r"(?<![\w<>=!])" + re.escape(sign).replace(r"\ ", r"\s+") + r"(?![\w<>=])", self.text[start:end]
        )
        if place is not None and "#" not in self.text[start:end]:
            begin, finish = start + place.start(), start + place.end()
            self.found += [Change(begin, finish, other, what) for other in others]

    def _negate(self, test: ast.expr) -> None:
        start, end = self._span(test)
        self.found.append(Change(start, end, f"not ({self.text[start:end]})", "condition"))

    def _leave_out(self, node: ast.stmt) -> None:
        start, end = self._span(node)
        self.found.append(Change(start, end, "pass", "statement"))
