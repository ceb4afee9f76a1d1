"""The project's own stages while their files change: C of kernels, templates, linker scripts, Python, cost tables."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from stages.system.installation import INSTALLATION as ROOT

# Stage, file that has another content while it runs, and is then put back with its times.
CHANGES = [
    ("tensorize", "stages/kernels/generic/gemm.c"),
    ("emit", "stages/emit/templates/model.c.j2"),
    ("emit", "stages/kernels/generic/gemm.c"),
    ("compile", "stages/targets/riscv/link.ld.in"),
    ("compile", "stages/targets/harness/main.c"),
    ("simulate", "stages/simulators/spike/plugin/rvp.cc"),
    ("verify", "stages/verify/judge.py"),
    ("report", "stages/report/rows.py"),
]

_RUN = """
import json, shutil, sys
from pathlib import Path
from pipeline.errors import InputChanged
from stages.system.installation import INSTALLATION as ROOT
from pipeline.runs.workspace import Workspace
from pipeline.runs.session import Session

changes, said = json.loads(sys.argv[1]), []
with Workspace() as workspace:
    session = Session(workspace, workspace.plan("layer", {"target": "rv64-scalar"}))
    for action in session.plan:
        cls = type(action.stage)
        original = cls.run
        for _, name in (change for change in changes if change[0] == action.kind):
            path, kept = ROOT / name, ROOT / "kept"
            def run(stage, job):
                # A cost table is read from a copy.
                assert not any(ROOT.joinpath("stages") in file.parents for file in job.files.values()), job.files
                shutil.copy2(path, kept)
                path.write_text(path.read_text() + chr(10))
                try:
                    original(stage, job)
                finally:
                    path.write_bytes(kept.read_bytes())
                    shutil.copystat(kept, path)
            cls.run = run
            try:
                session.run(action)
                said.append("ran")
            except InputChanged as error:
                said.append(error.message)
            assert not session.is_done(action)
        cls.run = original
        if action.kind != "report":
            session.run(action)
    session.close()
print(json.dumps(said))
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A copy of the project with one small recipe."""
    for name in ("pipeline", "stages"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pipeline.yaml", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / "recipes").mkdir()
    (tmp_path / "recipes/layer.yaml").write_text(
        "schema: 1\ntarget: rv64-scalar\nmodel: {op: conv2d, shape: [4, 4, 4], out_channels: 4, kernel: [3, 3]}\n"
    )
    return tmp_path


def run(project: Path, script: str, *arguments: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(project), "FIRMLINE_STORE": str(project / "store")}
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments],
        cwd=project,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_changes_that_are_put_back_before_the_stage_ends(project: Path) -> None:
    said = json.loads(run(project, _RUN, json.dumps(CHANGES)))
    assert said == [f"{kind}: {name} changed while {kind} ran" for kind, name in CHANGES]
    # What was stored before each of them is what a run without changes finds.
    end = "from pipeline.api import run_recipe; print(*(s.cached for s in run_recipe('layer').stages))"
    assert run(project, end).split() == ["True"] * 9 + ["False"]
