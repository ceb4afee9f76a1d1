"""`doit graph`: arrows between layers, lanes, and drawings of a project before and after its first run."""

import json
import xml.etree.ElementTree as ElementTree
from typing import Any

import pytest

from pipeline.commands import command as command_module
from pipeline.commands.graph import command as graph_command
from pipeline.commands.graph.command import Graph
from pipeline.commands.graph.content import Network, layer_column
from pipeline.commands.graph.drawing import Box, Column, svg
from tests.unit.pipeline.conftest import FakeProject

HOSTILE = 'a<b>&"\x1b[31m\u202e</svg>'


def tensor(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "shape": [1, 4], "constant": False, "alias_of": None, **more}


def layer(index: int, name: str, inputs: list[str], outputs: list[str]) -> dict[str, Any]:
    return {"index": index, "name": name, "op": {"op": "add"}, "inputs": inputs, "outputs": outputs}


def test_arrows_follow_tensors() -> None:
    """A residual connection, a view of a tensor, a constant, a layer with two outputs, and an output of the middle."""
    tensors = [tensor(name) for name in ("in", "a", "b", "c", "d")]
    tensors += [tensor("view", alias_of="a"), tensor("weights", constant=True), tensor("e", shape=[])]
    layers = [
        layer(0, HOSTILE, ["in"], ["a", "e"]),
        layer(1, "second", ["a", "weights"], ["b"]),
        layer(2, "third", ["b", "view"], ["c"]),
        layer(3, "fourth", ["c", "in"], ["d"]),
    ]
    graph = {"tensors": tensors, "layers": layers, "inputs": ["in"], "outputs": ["d", "e"]}
    plan = {"layers": [{"index": 1, "kernel": "generic.add", "why": "only one"}]}
    report = {"layers": [{"index": 2, "instructions": 12345}]}
    column = layer_column(Network(graph, plan, report))
    titles = [box.title for box in column.boxes]
    assert titles == ["in", f"0 {HOSTILE}", "1 second", "2 third", "3 fourth", "d", "e"]
    named = sorted((titles[a], titles[b]) for a, b in column.arrows)
    first = titles[1]
    assert named == sorted(
        [
            *(("in", first), ("in", "3 fourth"), (first, "1 second"), (first, "2 third"), ("1 second", "2 third")),
            *(("2 third", "3 fourth"), ("3 fourth", "d"), (first, "e")),
        ]
    )
    assert column.boxes[2].text == "add · generic.add · 1x4 → 1x4" and "only one" in column.boxes[2].tooltip
    assert column.boxes[3].figure == "12,345" and column.boxes[6].text == "output  scalar"
    assert column.heading == "layers, instructions of one inference"


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
