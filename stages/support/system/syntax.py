"""Python's parser, safe for several threads."""

import ast
from threading import Lock

_LOCK = Lock()


def parse(source: str | bytes) -> ast.Module:
    """Return the syntax tree of a module. Raises SyntaxError or ValueError as `ast.parse`.

    One thread parses at a time. CPython 3.11 shares its recursion counter between threads and raises SystemError ("AST
    constructor recursion depth mismatch") if two parse at once.
    """
    with _LOCK:
        return ast.parse(source)
