"""Files and tools that change while a stage runs, also when put back: an error names them, nothing is stored."""

import json
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from pipeline.errors import InputChanged, PipelineError
from pipeline.plugins.registry import Registry
from pipeline.runs.session import Session
from stages.base import Job
from stages.support.system.installation import INSTALLATION as ROOT
from tests.support.processes import python
from tests.unit.pipeline.conftest import FakeProject
from tests.unit.pipeline.fake_stages import FakeCompile, FakeEmit, FakeImport, FakeReport

STAGES = {"import": FakeImport, "emit": FakeEmit, "compile": FakeCompile, "report": FakeReport}


@contextmanager
def replaced(path: Path, text: str) -> Iterator[None]:
    """Another file under this name for a while; then the old one is back, byte by byte, with its times."""
    kept = path.with_name(f"{path.name}.kept")
    shutil.copy2(path, kept)
    path.chmod(path.stat().st_mode | 0o200)
    path.write_text(text)
    try:
        yield
    finally:
        path.write_bytes(kept.read_bytes())
        shutil.copystat(kept, path)
        kept.unlink()


def during(
    monkeypatch: pytest.MonkeyPatch, kind: str, path: Path, text: str = "other\n", *, stays: bool = False
) -> None:
    """While the stage runs the file has another content; afterwards it is put back, unless it `stays`."""
    original: Callable[..., None] = STAGES[kind].run

    def run(stage: Any, job: Job[Any]) -> None:
        if stays:
            path.write_text(text)
            original(stage, job)
        else:
            with replaced(path, text):
                original(stage, job)

    monkeypatch.setattr(STAGES[kind], "run", run)


def artifacts(project: FakeProject) -> list[Path]:
    return [path for path in (project.store / "artifacts").glob("*/*") if path.is_dir()]


@pytest.mark.parametrize("stays", [False, True])
def test_stage_reads_the_model_of_its_key_whatever_happens_to_the_file(
    project: FakeProject, monkeypatch: pytest.MonkeyPatch, stays: bool
) -> None:
    during(monkeypatch, "import", project.root / "model.txt", stays=stays)
    imported = project.run(until="import").artifacts["import"]
    assert (imported / "module.json").read_text() == "weights\n"
    monkeypatch.undo()
    monkeypatch.setenv("FAKE_RAN", str(project.root / "ran.txt"))
    project.ran()
    again = project.run(until="import").artifacts["import"]
    assert ((again / "module.json").read_text() == "other\n") == stays
    assert project.ran() == (["import"] if stays else [])


def planned(project: FakeProject, change: Callable[[], object], *, until: str = "") -> None:
    """A run in which something changes after it was planned."""
    with project.workspace() as workspace:
        session = Session(workspace, workspace.plan("demo", {}, until))
        change()
        try:
            for action in session.plan:
                session.run(action)
        finally:
            session.close()


@pytest.mark.parametrize(
    ("name", "kind"), [("model.txt", "import"), ("code/import.py", "import"), ("code/compile.py", "compile")]
)
def test_file_that_changed_after_planning(project: FakeProject, name: str, kind: str) -> None:
    with pytest.raises(InputChanged) as caught:
        planned(project, lambda: project.write(name, "other\n"))
    assert str(caught.value) == (
        f"{kind}: {name} changed after the run was planned\nthe result of {kind} was not stored; run again"
    )
    assert kind not in project.ran()
    assert list((project.store / "building").iterdir()) == []
    project.run()
    assert kind in project.ran()


@pytest.mark.parametrize("stays", [False, True])
@pytest.mark.parametrize(("name", "kind"), [("code/emit.py", "emit"), ("bin/fakecc", "compile")])
def test_code_or_tool_that_changes_while_the_stage_runs(
    project: FakeProject, monkeypatch: pytest.MonkeyPatch, name: str, kind: str, stays: bool
) -> None:
    path = project.root / name
    text = path.read_text().replace("code of", "CODE OF").replace("13.2.0", "14.2.0")
    assert text != path.read_text() and len(text) == path.stat().st_size
    during(monkeypatch, kind, path, text, stays=stays)
    with pytest.raises(InputChanged) as caught:
        project.run()
    shown = f"fakecc ({path})" if name == "bin/fakecc" else name
    assert str(caught.value).splitlines()[0] == f"{kind}: {shown} changed while {kind} ran"
    assert len(str(caught.value).splitlines()) == 2
    before = len(artifacts(project))
    assert before == [*STAGES].index(kind)
    monkeypatch.undo()
    monkeypatch.setenv("FAKE_RAN", str(project.root / "ran.txt"))
    monkeypatch.setenv("PATH", f"{project.root / 'bin'}{os.pathsep}{os.environ['PATH']}")
    project.ran()
    project.run()
    assert kind in project.ran()


def test_stage_that_stumbles_over_a_change_is_not_a_crash(
    project: FakeProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(stage: Any, job: Job[Any]) -> None:
        project.write("code/emit.py", "half a li")
        raise SyntaxError("invalid syntax")

    monkeypatch.setattr(FakeEmit, "run", run)
    with pytest.raises(InputChanged, match=r"emit: code/emit.py changed while emit ran"):
        project.run()


def test_artifact_that_changes_while_it_is_read(project: FakeProject, monkeypatch: pytest.MonkeyPatch) -> None:
    module = project.run(until="import").artifacts["import"] / "module.json"
    during(monkeypatch, "emit", module)
    with pytest.raises(InputChanged, match=r"emit: module.json of import's artifact changed while emit ran"):
        project.run()
    monkeypatch.undo()
    monkeypatch.setenv("PATH", f"{project.root / 'bin'}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("FAKE_RAN", str(project.root / "ran.txt"))
    assert (project.run().artifacts["emit"] / "src/model.c").read_text() == "4 weights\n"


def test_altered_cache_gives_no_file_the_digest_of_another(project: FakeProject) -> None:
    project.write("other.txt", "others!\n")
    names = [str(project.root / name) for name in ("model.txt", "other.txt")]
    for _ in range(2):
        for name in names:
            project.run(model=name, until="import")
        # Old enough now to be remembered.
        time.sleep(0.06)
    cache = project.store / "digests.json"
    text = cache.read_text()
    entries = json.loads(text.partition("\n")[2])
    digests = [entries[name][4] for name in names]
    assert digests[0] != digests[1]
    cache.write_text(text.replace(digests[0], "?").replace(digests[1], digests[0]).replace("?", digests[1]))
    modules = [project.run(model=name, until="import").artifacts["import"] / "module.json" for name in names]
    assert [path.read_text() for path in modules] == ["weights\n", "others!\n"]


PLUG_IN = """
from stages.base import Stage, StageConfig
{imports}

class Emit(Stage):
    kind = "emit"
    config = StageConfig
    consumes = ("import",)

    def run(self, job):
        (job.out / "made.txt").write_text({text})
"""
RUN = """
import sys
from pathlib import Path
sys.path[:0] = [{root!r}, {folder!r}]
from pipeline.api import run_recipe
from pipeline.plugins.registry import Registry
from {module} import Emit
from tests.unit.pipeline.fake_stages import FakeImport
root = Path(sys.argv[1])
done = run_recipe("demo", root=root, registry=Registry([FakeImport(), Emit()]), store=root / "store", until="emit")
print(*(stage.cached for stage in done.stages), (done.artifacts["emit"] / "made.txt").read_text())
"""


def plug_in_run(project: FakeProject, folder: Path, module: str) -> str:
    """Runs a recipe with the plug-in `module` of `folder`, in a process of its own."""
    project.recipe("schema: 1\ntarget: host\nmodel: {file: model.txt}\n")
    script = RUN.format(root=str(ROOT), folder=str(folder), module=module)
    done = python("-c", script, str(project.root), cwd=folder, env={"PYTHONDONTWRITEBYTECODE": ""})
    return done.stdout.strip()


BESIDE = {
    "mine.py": PLUG_IN.format(imports="import text_of", text="text_of.TEXT"),
    "text_of.py": "from more.text import TEXT\n",
    "more/__init__.py": "",
    "more/text.py": "TEXT = 'one'\n",
    "unused.py": "",
}
PACKAGE = {
    "pack/__init__.py": "",
    "pack/inner/__init__.py": "",
    "pack/made.txt.in": "one",
    "pack/inner/stage.py": PLUG_IN.format(
        imports="from pathlib import Path", text="Path(__file__).parents[1].joinpath('made.txt.in').read_text()"
    ),
}


@pytest.mark.parametrize(
    ("module", "files", "read", "text"),
    [("mine", BESIDE, "more/text.py", "TEXT = 'other'\n"), ("pack.inner.stage", PACKAGE, "pack/made.txt.in", "other")],
)
def test_what_a_plug_in_reads_is_in_its_key(
    project: FakeProject,
    tmp_path_factory: pytest.TempPathFactory,
    module: str,
    files: dict[str, str],
    read: str,
    text: str,
) -> None:
    """What it imports beside it, or all files of its package; wherever they lie, and nothing else."""
    folder = tmp_path_factory.mktemp("elsewhere")
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content)
    assert plug_in_run(project, folder, module) == "False False one"
    moved = folder.with_name(f"{folder.name}-moved")
    folder.rename(moved)
    (moved / "unused.py").write_text("# changed\n")
    assert plug_in_run(project, moved, module) == "True True one"
    (moved / read).write_text(text)
    assert plug_in_run(project, moved, module) == "True False other"


def test_class_in_no_file_is_refused(project: FakeProject) -> None:
    names: dict[str, Any] = {"__name__": "typed_in"}
    exec(PLUG_IN.format(imports="", text="''"), names)
    project.registry = Registry([FakeImport(), names["Emit"]()])
    project.recipe("schema: 1\ntarget: host\nmodel: {file: model.txt}\n")
    with pytest.raises(
        PipelineError, match=r"stage emit: the class Emit is not defined in a file\nmove it into a module"
    ):
        project.run()
