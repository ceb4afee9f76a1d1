"""The GitHub Actions workflow: it runs every recipe on its targets, and through ./bootstrap."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

from pipeline.plugins.registry import default_registry
from pipeline.recipes.loader import load_recipes
from pipeline.recipes.recipe_files import recipe_names
from stages.support.system.installation import INSTALLATION as ROOT

WORKFLOW: dict[str, Any] = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text())
JOBS: dict[str, Any] = WORKFLOW["jobs"]


def test_matrix_is_the_expansion_of_the_recipes(tmp_path: Path) -> None:
    """Each sub-recipe of each recipe is run by exactly one job, with the command that the workflow prints."""
    command = re.search(r"\$\(\./bootstrap (.*?)\)", JOBS["plan"]["steps"][-1]["run"])
    assert command is not None
    done = subprocess.run(
        [sys.executable, "-m", *command[1].split()],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), "FIRMLINE_STORE": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    # GitHub reads one line.
    assert done.stdout.count("\n") == 1
    registry = default_registry()
    jobs = [
        loaded.title + "@" + loaded.target.name
        for entry in json.loads(done.stdout)
        for loaded in load_recipes(entry["recipe"], root=ROOT, registry=registry, variables={"target": entry["target"]})
    ]
    expected = [
        loaded.title + "@" + loaded.target.name
        for name in recipe_names(ROOT)
        for loaded in load_recipes(name, root=ROOT, registry=registry)
    ]
    assert sorted(jobs) == sorted(expected)
    assert JOBS["recipe"]["strategy"]["matrix"] == {"include": "${{ fromJSON(needs.plan.outputs.include) }}"}
    assert JOBS["plan"]["outputs"]["include"] == "${{ steps.expand.outputs.include }}"
    assert JOBS["recipe"]["needs"] == "plan"


def test_figures_are_checked_with_the_compiler_they_were_measured_with() -> None:
    rows = json.loads((ROOT / "docs/bench.json").read_text())["rows"]
    assert {row["tools"]["compiler"].rpartition(".")[0] for row in rows} == {"12.2"}
    # Which has it.
    assert {job["container"] for job in JOBS.values()} == {"debian:12"}
