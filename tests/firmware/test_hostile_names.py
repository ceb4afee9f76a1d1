"""A network whose tensors and file have names that mean something where they are shown, through all stages."""

import io
import json
import re
from pathlib import Path

import pytest

from pipeline.api import run_recipe
from pipeline.runs.workspace import Workspace
from pipeline.terminal.progress import ProgressDisplay
from pipeline.terminal.reporter import show_end
from stages.ir.models.tflite_writer import TFLiteWriter
from tests.unit.messages.test_escape import HOSTILE

# What is no text at all, beside what is.
INVALID = b"\xff\xfe\xed\xa0\x80"
FILE = "a\nERROR: forged \x1b[31m[red]x[\u202e|`<b>_*y*_.tflite"


def hostile_network() -> bytes:
    """A chain of RELUs, one for each name, the last with bytes that are no UTF-8."""
    writer = TFLiteWriter("\x1b[31m")
    names = [name for name in HOSTILE if not re.search("[\ud800-\udfff]", name)]
    tensor = writer.input("\x1b]0;in\x07", (1, 8), "int8", 0.1, -3)
    for name in [*names, "replaced by bytes"]:
        made = writer.tensor(name, (1, 8), "int8", 0.1, -3)
        writer.operator("RELU", [tensor], [made])
        tensor = made
    writer.output(tensor)
    data = writer.build()
    placeholder = b"replaced by bytes"
    assert data.count(placeholder) == 1
    return data.replace(placeholder, INVALID.ljust(len(placeholder), b"\x1b"))


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("hostile") / FILE
    path.write_bytes(hostile_network())
    return path


def is_safe(text: str) -> bool:
    """Whether lines have nothing but what is printed, and none begins as no line of this project does."""
    return all(
        line.replace("\t", "").isprintable() and not line.startswith("ERROR: forged") for line in text.split("\n")
    )


def test_from_the_model_to_the_report(model: Path, tmp_path: Path) -> None:
    """With the names of layers that are there, and of those that are taken out."""
    recipe = {"schema": 1, "name": "hostile", "target": "host", "model": {"file": str(model)}}
    said = io.StringIO()
    display = ProgressDisplay(said)
    with Workspace(store=tmp_path / "store", build=tmp_path / "build") as workspace:
        run = run_recipe(recipe, store=tmp_path / "store", build=tmp_path / "build", display=display)
        show_end(display, workspace.plan(recipe), run.report, workspace.display_path(run.folder))
    assert run.report is not None and run.report["verify"]["mismatches"] == 0
    assert is_safe(said.getvalue()) and "[red]" in said.getvalue()

    page = (run.folder / "report.md").read_text(encoding="utf-8")
    assert is_safe(page)
    bare = re.sub(r"\\[!-/:-@\[-`{-~]", "", page)
    assert not re.search(r"<(?!br>)|`|\[|~~|://", bare)
    tables = [line for line in bare.split("\n") if line.startswith("|")]
    assert len({line.count("|") for line in tables[: len(run.report["layers"]) + 2]}) == 1

    log = (run.folder / "log.txt").read_text(encoding="utf-8")
    assert is_safe(log)
    assert all(re.match(r"[ \d.]{9} \w+ +\| |\w", line) for line in log.splitlines())

    whole = json.loads((run.folder / "report.json").read_text())
    rewrites = whole["simplify"]["rewrites"]
    names = {layer["name"] for layer in whole["layers"]} | {name for one in rewrites for name in one["layers"]}
    assert rewrites and {"\x1b[31mred\x1b[0m", "[red]text[/]", "x" * 100_000} <= names


def test_errors_about_the_model(model: Path) -> None:
    from pipeline.errors import PipelineError
    from stages.support.messages import escape

    broken = model.with_name(f"\x1b{FILE}")
    broken.write_bytes(model.read_bytes()[:200])
    with pytest.raises(PipelineError) as caught:
        run_recipe({"schema": 1, "name": "hostile", "target": "host", "model": {"file": str(broken)}})
    shown = escape.message(str(caught.value))
    assert is_safe(shown) and 1 <= len(shown.splitlines()) <= 5
