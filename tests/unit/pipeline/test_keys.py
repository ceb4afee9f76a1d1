"""Keys against what stages really open, in a whole run of one operator."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from pipeline.registry import default_registry
from pipeline.session import ROOT, Workspace

_RUN = """
import json, sys
from pathlib import Path
from pipeline.session import Session, Workspace

opened, running = {}, []

def note(event, arguments):
    if event == "open" and running and isinstance(arguments[0], str):
        opened.setdefault(running[-1], set()).add(arguments[0])

sys.addaudithook(note)
with Workspace(store=Path(sys.argv[1]), build=Path(sys.argv[2])) as workspace:
    plan = workspace.plan("conv2d_rvp")
    session = Session(workspace, plan)
    for action in plan:
        running.append(action.kind)
        session.run(action)
    running.clear()
    session.close()
print(json.dumps({kind: sorted(paths) for kind, paths in opened.items()}))
"""


def test_every_file_of_the_project_that_a_stage_opens_is_in_its_key(tmp_path: Path) -> None:
    """Modules are held by test_registry; this holds templates, C sources, cost tables: whatever else `run` reads."""
    done = subprocess.run(
        [sys.executable, "-c", _RUN, str(tmp_path / "store"), str(tmp_path / "build")],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    opened = {kind: _of_the_project(paths) for kind, paths in json.loads(done.stdout.splitlines()[-1]).items()}
    assert ROOT / "stages/emit/templates/model.c.j2" in opened["emit"]
    with Workspace(store=tmp_path / "store") as workspace:
        plan = workspace.plan("conv2d_rvp")
    covered: dict[str, set[Path]] = {}
    for stage in default_registry():
        own = {ROOT / path for path in plan[stage.kind].ingredients["code"]}
        own |= {ROOT / path for path in plan[stage.kind].files.values()}
        covered[stage.kind] = own.union(*(covered[kind] for kind in stage.consumes))
        assert opened.get(stage.kind, set()) - covered[stage.kind] == set(), stage.kind


def _of_the_project(paths: list[str]) -> set[Path]:
    """Files below stages/ and recipes/, without Python modules and what Python makes of them."""
    found = {(ROOT / path).resolve() for path in paths}
    places = [ROOT / "stages", ROOT / "recipes"]
    return {
        path
        for path in found
        if any(path.is_relative_to(place) for place in places)
        and path.suffix != ".py"
        and "__pycache__" not in path.parts
    } - {path for path in found if path.is_dir()}
