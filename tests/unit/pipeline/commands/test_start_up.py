"""What is asked of a recipe that has run is answered without the compiler's Python, which takes seconds to load."""

import shutil
import time
from pathlib import Path

import pytest

from pipeline.api import run_recipe
from pipeline.commands.new_project import new_project
from pipeline.commands.new_recipe import new_recipe
from pipeline.project import Project
from stages.support.system.installation import INSTALLATION as ROOT
from tests.support.processes import python

_HEAVY = {"tvm", "numpy", "scipy", "jinja2", "ai_edge_litert", "elftools", "rich"}
# Nor what reads networks and their operators: of what has run nothing is asked that needs them.
_READERS = {"stages.ir.models.tflite_reader", "stages.ir.operators.lstm"}
# Nor YAML, as the files are those of the last run; `doit list` reads others.
_PARSER = {"yaml"}
_ASKED = f"""
import sys
from pipeline.artifacts import digest
from pipeline.commands.dispatch import run
hashed, hash_file = [], digest.hash_file
digest.hash_file = lambda path: hashed.append(path.name) or hash_file(path)
code = run(sys.argv[1:])
print(code, *sorted({_HEAVY | _READERS | _PARSER} & set(sys.modules)), *hashed, file=sys.stderr)
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with two recipes that have run: a layer, and a file with data and labels."""
    folder = tmp_path_factory.mktemp("project")
    new_project(folder, target="host")
    new_recipe("act", Project(folder), layer="{op: relu, shape: [6]}", target="host")
    shutil.copytree(ROOT / "recipes/digits", folder / "recipes/digits")
    (folder / "recipes/read.yaml").write_text(
        (ROOT / "recipes/digits_rvp.yaml").read_text().replace("name: digits_rvp", "name: read\ntarget: host")
    )
    for _ in range(2):
        for name in ("act", "read"):
            run_recipe(name, root=Project(folder), store=folder / "store")
        time.sleep(0.1)  # a file of this moment is hashed again: it might be written once more
    return folder


@pytest.mark.parametrize(
    "line", [*("explain act", "run act dry_run=1", "list", "targets", "explain read", "run -q read")]
)
def test_nothing_heavy_is_loaded_and_no_file_is_hashed(project: Path, line: str) -> None:
    store = {"FIRMLINE_STORE": str(project / "store")}
    done = python("-c", _ASKED, *line.split(), cwd=project, env=store, check=False)
    code, *loaded = done.stderr.split()
    assert code == "0"
    allowed = _PARSER if line == "list" else set()
    assert set(loaded) <= (allowed if "read" in line else {"stages.ir.operators.lstm", *allowed})
