"""`doit export`: what it takes, what it refuses before anything runs, and forms of plug-ins."""

import re
from pathlib import Path

import pytest

from pipeline.commands.dispatch import run
from pipeline.commands.export import export
from pipeline.errors import PipelineError
from pipeline.plugins.discovery import plugins_of
from pipeline.project import Project
from stages.base import StageError
from stages.support.system.installation import INSTALLATION
from tests.support import exports

SMALL = """\
target: host
model: {op: conv2d, shape: [6, 6, 4], out_channels: 8, kernel: [3, 3]}
stages: {simulate: {inputs: {random: 1, extremes: false}}}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    exports.project(tmp_path / "mine", {"small": SMALL, "two": f"{SMALL}matrix: {{target: [host, cortex-m4]}}\n"})
    monkeypatch.chdir(tmp_path / "mine")
    monkeypatch.setenv("FIRMLINE_STORE", str(exports._store()))
    return tmp_path / "mine"


def error_of(words: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert run(["export", *words.split()]) in (1, 3)
    stderr = capsys.readouterr().err
    assert 1 <= len(stderr.splitlines()) <= 5
    return stderr


def test_refused(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """None of these runs a stage, or leaves anything."""
    assert "doit export needs as=FORM\nforms: arduino, cmake" in error_of("recipe=small", capsys)
    assert "doit export needs as=FORM" in error_of("small", capsys)
    assert "no recipe is named: use `doit export NAME`" in error_of("as=cmake", capsys)
    assert "did you mean 'cmake'" in error_of("recipe=small as=cmak", capsys)
    several = "needs one variant, but the name matches 2\nname one, such as two:host"
    assert several in error_of("recipe=two as=cmake", capsys)
    assert "recipes of one export need the same target: small is for host, two:cortex-m4 is for cortex-m4" in (
        error_of("small,two:cortex-m4 as=cmake", capsys)
    )
    same = error_of("recipe=small,two:host as=cmake set=stages.emit.prefix=net", capsys)
    assert "small and two:host have the same prefix of C names, 'net'" in same and "emit: {prefix: second}" in same
    for names in ("small,small", "small small", "recipe=small,small", "small recipes/small.yaml"):
        twice = error_of(f"{names} as=cmake arenas=shared", capsys)
        assert "small is named 2 times\nan export has each recipe once" in twice
    assert "as=mlperf-tiny takes one recipe, got small, two:host" in error_of("small two:host as=mlperf-tiny", capsys)
    assert "model= replaces the model of one recipe" in error_of("small two:host as=cmake model=x.tflite", capsys)
    assert "arenas=both: expected apart or shared" in error_of("small two:host as=cmake arenas=both", capsys)
    assert "arenas=shared needs several recipes, got small" in error_of("small as=cmake arenas=shared", capsys)
    assert "doit export takes no 'form='" in error_of("recipe=small form=cmake", capsys)
    without = "recipe=small as=cmake set=stages.simulate=false,stages.verify=false,stages.report=false"
    assert "has no stage simulate" in error_of(without, capsys)
    (folder / "taken").mkdir()
    (folder / "taken/notes.txt").write_text("mine")
    assert "taken has other files: notes.txt" in error_of("recipe=small as=cmake to=taken", capsys)
    assert sorted(path.name for path in folder.iterdir()) == ["pipeline.yaml", "recipes", "taken"]
    assert [path.name for path in (folder / "taken").iterdir()] == ["notes.txt"]


def test_two_recipes_in_one_export(folder: Path) -> None:
    """Names, the default folder, and an export with other arenas beside it."""
    project, store = Project(folder), exports._store()
    # The form needs weights=c, also if set= has another value.
    overrides = {"set": "stages.emit.weights=incbin"}
    result = export(["small", "two:host"], "platformio", "", overrides, project=project, store=store)
    assert result["recipe"] == "small,two:host" and result["folder"] == "build/small_two_host/host/export/platformio"
    names = {path.name for path in (folder / result["folder"] / "src/small_two_host").iterdir()}
    assert names >= {"small", "two_host"} and "arena.c" not in names
    with pytest.raises(StageError, match=r"has another export: small,two:host for host as platformio"):
        export(["small", "two:host"], "platformio", arenas="shared", project=project, store=store)


def test_the_form_of_the_page(folder: Path) -> None:
    page = (INSTALLATION / "docs/how-to/export.md").read_text()
    for path, text in re.findall(r"^```\w*\n# (plugins/\S+)\n(.*?)^```$", page, re.MULTILINE | re.DOTALL):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    plugins_of.cache_clear()
    result = export("small", "bazel", project=Project(folder), store=exports._store())
    assert result["run"] == "bazel test //small:test"
    assert 'hdrs = ["src/small.h"]' in (folder / result["folder"] / "BUILD").read_text()
    # A module without FORM, and one with a name that is taken.
    (folder / "plugins/exports/bazel/__init__.py").rename(folder / "plugins/exports/cmake.py")
    plugins_of.cache_clear()
    with pytest.raises(PipelineError, match="has the name of a built-in form, 'cmake'"):
        export("small", "cmake", project=Project(folder))
    (folder / "plugins/exports/cmake.py").rename(folder / "plugins/exports/other.py").write_text("")
    plugins_of.cache_clear()
    with pytest.raises(PipelineError, match="its module does not define FORM"):
        export("small", "other", project=Project(folder))
    plugins_of.cache_clear()
