"""Docstrings: every public function has one, or overrides a method that has, and its first line is short."""

from __future__ import annotations

import ast
from collections import defaultdict
from typing import TYPE_CHECKING

from stages.support.system.installation import INSTALLATION as ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator

_MOST = 89  # characters of a first line

Documented = ast.Module | ast.ClassDef | ast.FunctionDef


def _definitions(parent: ast.AST, owner: str = "") -> Iterator[tuple[str, ast.ClassDef | ast.FunctionDef]]:
    """Yield the classes and functions of modules and classes, each with its class's name."""
    for node in ast.iter_child_nodes(parent):
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            yield owner, node
        if not isinstance(node, ast.FunctionDef):
            yield from _definitions(node, node.name if isinstance(node, ast.ClassDef) else owner)


def test_public_functions_have_docstrings_and_first_lines_are_short() -> None:
    bases: dict[str, set[str]] = defaultdict(set)
    described: dict[str, set[str]] = defaultdict(set)
    undescribed: list[tuple[str, str, str]] = []
    long: list[str] = []
    count = 0
    for path in sorted(path for folder in ("pipeline", "stages") for path in (ROOT / folder).rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, Documented) and len((ast.get_docstring(node) or "").partition("\n")[0]) > _MOST:
                long.append(f"{path}: {ast.get_docstring(node)}")
        for owner, node in _definitions(tree):
            if isinstance(node, ast.ClassDef):
                bases[node.name] |= {ast.unparse(base).partition("[")[0].rpartition(".")[2] for base in node.bases}
            elif ast.get_docstring(node):
                described[owner].add(node.name)
            elif not (node.name.startswith("_") or owner.startswith("_")):
                undescribed.append((f"{path}:{node.lineno}", owner, node.name))
            count += isinstance(node, ast.FunctionDef)

    def is_described(owner: str, name: str, seen: frozenset[str] = frozenset()) -> bool:
        above = bases[owner] - seen if owner else ()
        return any(name in described[base] or is_described(base, name, seen | {owner}) for base in above)

    assert count > 4000
    assert long == []
    assert [place for place, owner, name in undescribed if not is_described(owner, name)] == []
