"""The order of the stages, and what loading them costs."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import pytest

from pipeline.registry import Registry, default_registry
from pipeline.session import ROOT
from tests.unit.pipeline.fake_stages import FakeCompile, FakeEmit, FakeImport

# What stages, targets and models declare has no behaviour of its own; the values are in the keys.
DECLARATIONS = {
    ROOT / "stages" / name
    for name in ("base.py", "strict_model.py", "pathname.py", "targets/memory.py", "targets/spec.py", "models/spec.py")
}


def test_the_nine_stages_in_order() -> None:
    assert default_registry().kinds == (
        "import",
        "layout",
        "quantize",
        "tensorize",
        "emit",
        "compile",
        "simulate",
        "verify",
        "report",
    )


def test_every_source_pattern_matches() -> None:
    """A mistyped pattern would leave code out of the key, and nobody would notice. (Measurements need not exist.)"""
    patterns = [
        (stage.kind, glob) for stage in default_registry() for glob in stage.sources if glob.startswith("stages/")
    ]
    assert len(patterns) >= 9
    assert [(kind, glob) for kind, glob in patterns if not any(ROOT.glob(glob))] == []


def test_keys_cover_every_module_that_a_stage_imports() -> None:
    """What a stage imports, directly or not, is in its own sources or in those of the stages that it consumes."""
    covered: dict[str, set[Path]] = {}
    for stage in default_registry():
        own = {path for glob in stage.sources for path in ROOT.glob(glob)}
        covered[stage.kind] = own.union(*(covered[kind] for kind in stage.consumes))
        imported = _imported(path for path in own if path.suffix == ".py")
        missing = imported - covered[stage.kind] - DECLARATIONS
        assert {str(path.relative_to(ROOT)) for path in missing} == set(), stage.kind


def _imported(files: Iterable[Path]) -> set[Path]:
    """The project's modules that these files import when stages run, and that those import in turn."""
    found: set[Path] = set()
    waiting = list(files)
    while waiting:
        fresh = _imports(waiting.pop()) - found
        found |= fresh
        waiting += fresh
    return found


@cache
def _imports(file: Path) -> set[Path]:
    """The modules below stages/ that one file imports."""
    names: list[str] = []
    for node in _that_run(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    places = [ROOT.joinpath(*name.split(".")) for name in names if name.startswith("stages.")]
    return {path for place in places for path in (place.with_suffix(".py"), place / "__init__.py") if path.is_file()}


def _that_run(node: ast.AST) -> Iterator[ast.AST]:
    """All below a node but what only type checkers read, and the references of layers, which no stage runs."""
    yield node
    for child in ast.iter_child_nodes(node):
        for_checkers = isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING"
        if not for_checkers and not (isinstance(child, ast.FunctionDef) and child.name == "compute"):
            yield from _that_run(child)


def test_consumed_stages_run_before() -> None:
    with pytest.raises(ValueError, match=r"stage compile consumes \['emit'\] which do not run before it"):
        Registry([FakeImport(), FakeCompile(), FakeEmit()])


def test_planning_imports_nothing_heavy() -> None:
    """Loads and plans a real recipe in a fresh process; a tool that this machine lacks ends planning, no more."""
    script = """
import sys, tempfile
from pathlib import Path
from pipeline.errors import ToolError
from pipeline.session import Workspace
with tempfile.TemporaryDirectory() as folder, Workspace(store=Path(folder)) as workspace:
    try:
        assert len(workspace.plan("mobilenet_rvp").actions) == 9
    except ToolError as error:
        print(error, file=sys.stderr)
print(sorted({"tvm", "numpy", "jinja2", "rich", "ai_edge_litert", "elftools"} & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "[]", done.stderr
