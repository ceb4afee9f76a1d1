"""A small project with four stages that write text, to test the pipeline without real stages."""

import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml
from doit import doit_cmd
from doit.cmd_base import NamespaceTaskLoader
from doit.doit_cmd import DoitMain

from pipeline.api import RunResult, run_recipe
from pipeline.commands.tasks import doit_config, recipe_tasks
from pipeline.plugins.registry import Registry
from pipeline.project import project_of
from pipeline.runs.workspace import Workspace
from stages.backends.targets.load import family_files
from stages.support.system.installation import INSTALLATION as ROOT
from tests.unit.pipeline.fake_stages import fake_registry

RECIPE = """\
schema: 1
name: demo
target: rv64-rvp
model: {file: model.txt}
stages:
  emit: {unroll: 4}
  compile:
    opt: O2
    flags: [-g]
"""

Doit = Callable[..., tuple[int, str, str]]
Capture = pytest.CaptureFixture[str]
TARGETS = ("rv64-rvp", "rv32-rvp", "rv64-scalar", "rv32-scalar", "cortex-m4", "host")


@dataclass
class FakeProject:
    """A project folder; `run` runs a recipe, `ran()` returns the stages that ran since the last call."""

    root: Path
    registry: Registry = field(default_factory=fake_registry)

    def write(self, name: str, text: str) -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def recipe(self, text: str, name: str = "demo") -> Path:
        return self.write(f"recipes/{name}.yaml", text)

    def edit(self, name: str, old: str, new: str) -> None:
        path = self.root / name
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new))

    def run(
        self, recipe: str | Path | Mapping[str, Any] = "demo", until: str = "", *, record: bool = True, **variables: str
    ) -> RunResult:
        places: dict[str, Any] = {"root": self.root, "registry": self.registry, "store": self.store}
        return run_recipe(recipe, variables, until=until, record=record, **places)

    def start(self, mood: str = "") -> subprocess.Popen[str]:
        """Start a run as a process in a new session, with a folder of its own for temporary files."""
        (self.root / "tmp").mkdir(exist_ok=True)
        places = {"PYTHONPATH": str(ROOT), "TMPDIR": str(self.root / "tmp")}
        return subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("fake_stages.py")), str(self.root)],
            env={**os.environ, **places, "FAKE_MOOD": mood},
            cwd=self.root,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def workspace(self) -> Workspace:
        return Workspace(root=self.root, registry=self.registry, store=self.store)

    def serve(self, monkeypatch: pytest.MonkeyPatch, *commands: ModuleType) -> None:
        """Make the modules of commands use this project."""
        for module in commands:
            monkeypatch.setattr(module, "current_project", lambda: project_of(self.root), raising=False)
            monkeypatch.setattr(module, "Workspace", lambda **_: self.workspace())

    @property
    def store(self) -> Path:
        return self.root / "store"

    def ran(self) -> list[str]:
        """Return the kinds of the stages that ran since the last call, in order."""
        log = self.root / "ran.txt"
        kinds = log.read_text().split() if log.exists() else []
        log.unlink(missing_ok=True)
        return kinds

    def tool(self, version: str) -> None:
        """Install the program `fakecc` with a version."""
        asked = self.root / "asked.txt"
        program = self.write("bin/fakecc", f"#!/bin/sh\necho asked >> {asked}\necho 'fakecc (x) {version}'\n")
        program.chmod(0o755)


@cache
def pipeline_yaml() -> str:
    """Return pipeline.yaml with a few real targets, since error messages list all."""
    files = [yaml.safe_load(path.read_text()) for path in family_files(ROOT)]
    cores = {name: core for content in files for name, core in content.get("cores", {}).items()}
    timings = {name: model for content in files for name, model in content.get("timings", {}).items()}
    chosen = {name: cores[name] for name in TARGETS}
    return yaml.safe_dump({"schema": 1, "cores": chosen, "timings": timings}, sort_keys=False)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeProject:
    fake = FakeProject(tmp_path)
    fake.write("pipeline.yaml", pipeline_yaml())
    fake.recipe(RECIPE)
    fake.write("model.txt", "weights\n")
    for kind in fake.registry.kinds:
        fake.write(f"code/{kind}.py", f"# code of {kind}\n")
    fake.tool("13.2.0")
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("FAKE_RAN", str(tmp_path / "ran.txt"))
    return fake


class _Loader(NamespaceTaskLoader):  # type: ignore[misc]  # doit has no types
    """Loads the tasks of pipeline/commands/dodo.py for the fake project."""

    def __init__(self, project: FakeProject, words: tuple[str, ...]) -> None:
        super().__init__()
        self._project = project
        self._words = words

    def setup(self, opt_values: object) -> None:
        def task_recipe():  # type: ignore[no-untyped-def]
            yield from recipe_tasks(self._words, self._project.root, self._project.registry)

        config = doit_config(self._words, self._project.root, self._project.registry)
        # doit's default is the stdout at import, which pytest has replaced.
        self.namespace = {"DOIT_CONFIG": {**config, "outfile": sys.stdout}, "task_recipe": task_recipe}


@pytest.fixture(autouse=True)
def no_arguments_of_other_commands(monkeypatch: pytest.MonkeyPatch) -> None:
    """doit keeps `name=value` arguments for the whole process."""
    monkeypatch.setattr(doit_cmd, "_CMDLINE_VARS", None)


@pytest.fixture
def doit(project: FakeProject, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> Doit:
    """Return a function that runs doit and returns exit code, stdout and stderr."""
    monkeypatch.setenv("FIRMLINE_STORE", "store")

    def run(*arguments: str) -> tuple[int, str, str]:
        code = DoitMain(_Loader(project, arguments), config_filenames=()).run(list(arguments))
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run
