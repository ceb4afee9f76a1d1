"""The order of the stages, and what loading them costs."""

from __future__ import annotations

import subprocess
import sys

from pipeline.plugins.registry import default_registry
from pipeline.recipes.targets import load_targets
from stages.system.installation import INSTALLATION as ROOT


def test_the_stages_in_order() -> None:
    assert default_registry().kinds == ("ptq", *default_registry().named[:3], "count", *default_registry().named[3:])
    assert default_registry().named == (
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
    """A mistyped pattern would leave code out of the key, and nobody would notice."""
    targets = load_targets(ROOT).values()
    patterns = {(stage.kind, glob) for stage in default_registry() for glob in stage.sources}
    patterns |= {(one.kind, glob) for one in default_registry() for t in targets for glob in one.target_sources(t)}
    assert len(patterns) >= 30
    assert [(kind, glob) for kind, glob in patterns if not any(ROOT.glob(glob))] == []


def test_planning_imports_nothing_heavy() -> None:
    """Loads and plans a real recipe in a fresh process; a tool that this machine lacks ends planning, no more."""
    script = """
import sys, tempfile
from pathlib import Path
from pipeline.errors import ToolError
from pipeline.runs.workspace import Workspace
with tempfile.TemporaryDirectory() as folder, Workspace(store=Path(folder)) as workspace:
    try:
        assert len(workspace.plan("mobilenet_rvp").actions) == 10
    except ToolError as error:
        print(error, file=sys.stderr)
print(sorted({"tvm", "numpy", "jinja2", "rich", "ai_edge_litert", "elftools"} & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "[]", done.stderr
