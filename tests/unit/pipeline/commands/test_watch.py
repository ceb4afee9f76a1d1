"""`doit watch`: what is watched, changes during a run, new files, and the command itself."""

import os
import selectors
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from pipeline.commands import watch as watch_module
from pipeline.commands.watch import dependencies, times_of, wait
from stages.support.system.installation import INSTALLATION as ROOT
from tests.unit.pipeline.conftest import FakeProject

RECIPE = "schema: 1\ntarget: {}\nmodel: {{op: relu, shape: [6]}}\n"


def test_recipes_models_and_code_are_watched(project: FakeProject, monkeypatch: pytest.MonkeyPatch) -> None:
    project.serve(monkeypatch, watch_module)
    project.recipe("schema: 1\nname: child\nextends: demo\n", "child")

    def watched(name: str = "child") -> set[str]:
        paths = dependencies([name], {})
        return {path.relative_to(project.root).as_posix() for path in paths if path.is_relative_to(project.root)}

    names = watched()
    assert names >= {"pipeline.yaml", "recipes/child.yaml", "recipes/demo.yaml", "model.txt"}
    assert {f"code/{kind}.py" for kind in ("import", "emit", "compile", "report")} <= names
    assert names - watched("child:emit") == {"code/compile.py", "code/report.py"}
    # With an error in the recipe, the remedy may be in any other.
    project.recipe("schema: 1\nname: child\nextends: nosuch\n", "child")
    assert watched() == {"pipeline.yaml", "recipes/child.yaml", "recipes/demo.yaml"}


@pytest.mark.parametrize("name", ["data/b.npy", "data/a.npy", "data/missing.npy"])
def test_new_and_replaced_files_end_the_wait(tmp_path: Path, name: str) -> None:
    """Editors replace a file by a rename; a link leads to the folder; other files are ignored."""
    (tmp_path / "real").mkdir()
    (tmp_path / "data").symlink_to("real")
    for known in ("a.npy", "notes.txt"):
        (tmp_path / "data" / known).write_text("1")

    def change() -> None:
        for number in range(50):  # until the watcher is ready
            time.sleep(0.2)
            (tmp_path / "data/notes.txt").write_text(str(number))
            (tmp_path / "data/.saved").write_text(str(number))
            (tmp_path / "data/.saved").rename(tmp_path / name)
            if ended.is_set():
                return

    ended = threading.Event()
    thread = threading.Thread(target=change)
    thread.start()
    try:
        changed = wait(times_of([tmp_path / "data/a.npy", tmp_path / "data/missing.npy"]))
    finally:
        ended.set()
        thread.join()
    assert {path.name for path in changed} == {Path(name).name}


def test_the_command(tmp_path: Path) -> None:
    """Two mistakes, one after the other: each is reported by a run of its own. A signal ends the command."""
    (tmp_path / "recipes").mkdir()
    (tmp_path / "pipeline.yaml").write_text("schema: 1\n")
    recipe = tmp_path / "recipes/act.yaml"
    recipe.write_text(RECIPE.format("first"))
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "FIRMLINE_STORE": str(tmp_path / "store")}
    command = [sys.executable, "-P", "-m", "pipeline", "watch", "act"]
    with subprocess.Popen(
        command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as process:
        assert process.stdout is not None
        output = b""

        def read_until(text: bytes) -> None:
            nonlocal output
            assert process.stdout is not None
            with selectors.DefaultSelector() as selector:
                selector.register(process.stdout, selectors.EVENT_READ)
                while text not in output:
                    assert selector.select(60), output
                    data = os.read(process.stdout.fileno(), 65536)
                    assert data, output
                    output += data

        try:
            read_until(b"unknown target 'first'")
            read_until(b"watching 2 files; Ctrl-C ends")
            output = b""
            recipe.write_text(RECIPE.format("second"))
            read_until(b"unknown target 'second'")
            process.send_signal(signal.SIGTERM)
            assert process.wait(60) == 128 + signal.SIGTERM
        finally:
            process.kill()
