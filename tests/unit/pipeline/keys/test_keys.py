"""Keys compared with the files that stages open in a run of one operator."""

import json
from pathlib import Path

import pytest

from pipeline.keys.tools import Tools
from pipeline.plugins.registry import default_registry
from pipeline.recipes.targets import load_targets
from pipeline.runs.workspace import Workspace
from stages.base import ToolIdentity
from stages.ir.models.spec import FileModel
from stages.support.system.installation import INSTALLATION as ROOT
from tests.support.processes import python

_RUN = """
import json, sys
from pathlib import Path
from pipeline.runs.workspace import Workspace
from pipeline.runs.session import Session

opened, running = {}, []

def note(event, arguments):
    if event == "open" and running and isinstance(arguments[0], str):
        opened.setdefault(running[-1], set()).add(arguments[0])

sys.addaudithook(note)
with Workspace(store=Path(sys.argv[1]), build=Path(sys.argv[2])) as workspace:
    plan = workspace.plan("conv2d_rvp", {"target": sys.argv[3]})
    session = Session(workspace, plan)
    for action in plan:
        running.append(action.kind)
        session.run(action)
    running.clear()
    session.close()
print(json.dumps({kind: sorted(paths) for kind, paths in opened.items()}))
"""


@pytest.mark.parametrize("target", ["rv64-rvp", "host", "cortex-m55"])
def test_every_file_of_the_project_that_a_stage_opens_is_in_its_key(tmp_path: Path, target: str) -> None:
    """Covers templates and C sources; the input guard of a run covers modules."""
    done = python("-c", _RUN, str(tmp_path / "store"), str(tmp_path / "build"), target)
    opened = {kind: _of_the_project(paths) for kind, paths in json.loads(done.stdout.splitlines()[-1]).items()}
    assert ROOT / "stages/emit/templates/model.c.j2" in opened["emit"]
    with Workspace(store=tmp_path / "store") as workspace:
        plan = workspace.plan("conv2d_rvp", {"target": target})
    for action in plan:
        known = {ROOT / path for path in action.ingredients["code"]} | {ROOT / path for path in action.files.values()}
        assert opened.get(action.kind, set()) - known == set(), action.kind


# A file, a target, and the stages with the file in their keys.
USED = [
    ("stages/backends/cortex_m/kernels/mve/lanes.S", "rv64-rvp", []),
    ("stages/backends/cortex_m/kernels/mve/lanes.S", "cortex-m55", ["count", "tensorize", "emit"]),
    ("stages/backends/aarch64/kernels/neon/windows.c", "aarch64-dotprod", ["count", "tensorize", "emit"]),
    ("stages/backends/kernels/include/requantize.h", "rv64-rvp", ["count", "tensorize", "emit"]),
    ("stages/layout/apply.py", "rv64-rvp", ["layout"]),
    ("stages/backends/cortex_m/runtime/fault.c", "cortex-m4", ["count", "compile"]),
    ("stages/backends/harness/posix/files.c", "host", ["compile"]),
    ("stages/backends/harness/main.c", "rv64-rvp", ["count", "compile"]),
    ("stages/backends/qemu/plugin/counter.c", "cortex-m4", ["count", "simulate"]),
    ("stages/backends/riscv/spike/fault.py", "rv64-rvp", ["count", "simulate"]),
    ("stages/lower/arena/planner.py", "rv64-rvp", ["count", "tensorize", "emit"]),
    ("stages/backends/accelerators/ne16/hwlib/ne16.c", "rv32-ne16", ["count", "tensorize", "emit"]),
    ("stages/backends/accelerators/ne16/device/job.cc", "rv32-ne16", ["simulate"]),
]


@pytest.mark.parametrize("target", sorted({target for _, target, _ in USED}))
def test_keys_have_the_code_in_use(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, target: str) -> None:
    # Independent of the tools of this machine.
    monkeypatch.setattr(Tools, "identify", lambda tools, tool: ToolIdentity(tool.name, "", "1"))
    with Workspace(store=tmp_path / "store") as workspace:
        plan = workspace.plan("conv2d_rvp", {"target": target})
    for name, kinds in [(name, kinds) for name, where, kinds in USED if where == target]:
        assert (ROOT / name).is_file() and [action.kind for action in plan if name in action.code] == kinds, name


def _of_the_project(paths: list[str]) -> set[Path]:
    """Files below stages/ and recipes/ without Python modules and caches."""
    opened = {(ROOT / path).resolve() for path in paths}
    places = [ROOT / "stages", ROOT / "recipes"]
    return {
        path
        for path in opened
        if any(path.is_relative_to(place) for place in places)
        and path.suffix != ".py"
        and "__pycache__" not in path.parts
    } - {path for path in opened if path.is_dir()}


def test_every_source_pattern_matches() -> None:
    """A mistyped pattern would leave code out of the key, and nobody would notice."""
    targets = load_targets(ROOT).values()
    model = FileModel(file="model.tflite")
    patterns = {
        (stage.kind, glob)
        for stage in default_registry()
        for target in targets
        for glob in stage.inputs(stage.config(), model, target).sources
    }
    assert len(patterns) >= 30
    assert [(kind, glob) for kind, glob in patterns if not any(ROOT.glob(glob))] == []
