"""`doit graph`: arrows between layers, lanes, and drawings of a project before and after its first run."""

import json
import xml.etree.ElementTree as ElementTree
from typing import Any

import pytest

from pipeline.commands import command as command_module
from pipeline.commands.graph import command as graph_command
from pipeline.commands.graph.command import Graph
from pipeline.commands.graph.drawing import Box, Column, svg
from tests.unit.pipeline.conftest import FakeProject

HOSTILE = 'a<b>&"\x1b[31m\u202e</svg>'


def test_svg_is_well_formed_whatever_names_are() -> None:
    boxes = [Box(HOSTILE, HOSTILE, HOSTILE * 50, HOSTILE), Box("", "", "")]
    text = svg(HOSTILE, [Column(HOSTILE, boxes, [(0, 1)]), Column("", [], [])])
    root = ElementTree.fromstring(text)
    assert len(root.findall(".//{*}rect")) == 2 and len(root.findall("{*}path")) == 1
    assert not any(ord(letter) < 32 and letter != "\n" for letter in text) and "\u202e" not in text


@pytest.fixture
def draw(project: FakeProject, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    """Runs the command for a recipe; returns the records and the text of each box of the stages."""
    project.serve(monkeypatch, graph_command)

    def run(
        values: dict[str, str] | None = None, to: str = "", name: str = "demo"
    ) -> tuple[list[dict[str, Any]], list[list[str]]]:
        monkeypatch.setattr(command_module, "variables", lambda: dict(values or {}))
        command = Graph()
        command.own_values = {"to": to} if to else {}
        assert command.execute({"json": True}, [name]) == 0
        records = json.loads(capsys.readouterr().out)
        root = ElementTree.parse(project.root / records[0]["file"]).getroot()
        return records, [[text.text or "" for text in group.findall("{*}text")] for group in root.findall("{*}g")]

    return run


def test_before_and_after_a_run(project: FakeProject, draw: Any) -> None:
    records, boxes = draw()
    assert records[0] | {"file": ""} == {"recipe": "demo", "target": "rv64-rvp", "file": "", "stages": 4, "layers": 0}
    assert boxes == [[kind, "will run"] for kind in ("import", "emit", "compile", "report")]
    project.run()
    _, boxes = draw()
    assert [[box[0], box[-1]] for box in boxes] == [
        [kind, "cached"] for kind in ("import", "emit", "compile", "report")
    ]
    assert all(box[1].endswith(" s") for box in boxes)
    _, boxes = draw({"set": "stages.compile.opt=O3"}, "other/demo.svg")
    assert boxes[2][-1] == "will run" and boxes[3][-1] == "cached, unless compile changes it"
    assert (project.root / "other/demo.svg").is_file()
    records, _ = draw({"target": "host,rv32-rvp"})
    assert [record["target"] for record in records] == ["host", "rv32-rvp"]
    assert (project.root / "build/demo/rv32-rvp/graph.svg").is_file()
    records, boxes = draw(name="demo:emit")
    assert records[0]["file"] == "build/demo/rv64-rvp/graph-emit.svg" and records[0]["stages"] == 2
    assert [box[0] for box in boxes] == ["import", "emit"]
    assert project.ran() == ["import", "emit", "compile", "report"]
