"""Python's own parser, for several threads."""

from __future__ import annotations

import ast
from threading import Lock

_ONE = Lock()


def parse(source: str | bytes) -> ast.Module:
    """The syntax tree of a module; raises SyntaxError or ValueError as `ast.parse`.

    One thread at a time: CPython 3.11 counts how deep it is in the trees of all threads in one place, and raises
    SystemError ("AST constructor recursion depth mismatch") where two meet.
    """
    with _ONE:
        return ast.parse(source)
