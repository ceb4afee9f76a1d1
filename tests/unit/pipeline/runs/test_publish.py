"""The build folder: complete, the user's own, and rewritten only where it differs."""

import json
from pathlib import Path
from typing import Any

from pipeline.runs.publish import publish
from stages.report.html import command_mark
from tests.unit.pipeline.conftest import FakeProject


def test_report_is_completed_with_stages_and_tools(project: FakeProject) -> None:
    result = project.run()
    report = json.loads((project.root / "build/demo/rv64-rvp/report.json").read_text())
    assert report == result.report
    assert report["instructions"] == {"total": 42}
    assert report["tools"] == {"fakecc": "13.2.0"}
    assert [stage["kind"] for stage in report["stages"]] == ["import", "emit", "compile", "report"]
    assert {stage["cached"] for stage in report["stages"]} == {False}
    again = project.run().report
    assert again is not None
    assert {stage["cached"] for stage in again["stages"]} == {True}
    assert [stage["seconds"] for stage in again["stages"]] == [stage["seconds"] for stage in report["stages"]]
    # The artifact itself has nothing of the run: the same key gives the same bytes.
    assert "stages" not in json.loads((result.artifacts["report"] / "report.json").read_text())


def test_commands_of_the_advice_are_those_of_the_run(tmp_path: Path) -> None:
    report, folder = tmp_path / "report", tmp_path / "build"
    report.mkdir()
    advice = [{"command": "doit run RECIPE set=a=1"}, {"command": None}]
    (report / "report.json").write_text(json.dumps({"advice": advice}))
    for name in ("report.html", "report.md"):
        (report / name).write_text(f"first {command_mark(0)}, second {command_mark(1)}.")
    published = publish({"report": report}, folder, {"stages": [], "tools": {}}, "", lambda text: f"<{text}>")
    assert published is not None
    assert [entry["command"] for entry in published["advice"]] == ["<doit run RECIPE set=a=1>", None]
    for name in ("report.html", "report.md"):
        assert (folder / name).read_text() == "first <code>&lt;doit run RECIPE set=a=1&gt;</code>, second ."


def test_unchanged_files_are_not_rewritten(project: FakeProject) -> None:
    project.run()
    folder = project.root / "build/demo/rv64-rvp"
    before = [(folder / name).stat().st_ino for name in ("firmware.elf", "src", "src/model.c")]
    project.run()
    assert [(folder / name).stat().st_ino for name in ("firmware.elf", "src", "src/model.c")] == before


def test_what_a_user_changed_comes_back(project: FakeProject) -> None:
    project.run()
    folder = project.root / "build/demo/rv64-rvp"
    (folder / "firmware.elf").write_text("stripped")
    (folder / "src" / "mine.c").write_text("")
    (folder / "src" / "model.h").unlink()
    project.run()
    assert (folder / "firmware.elf").read_text() == "O2 4 weights\n"
    assert sorted(path.name for path in (folder / "src").iterdir()) == ["model.c", "model.h"]
    assert [path.name for path in folder.iterdir() if path.name.startswith(".")] == []


def test_what_ran_on_a_board_is_kept_from_a_simulation(tmp_path: Path) -> None:
    def run(name: str, ran: dict[str, Any] | None, *pictures: str) -> None:
        report_folder = tmp_path / name
        report_folder.mkdir()
        for file in ("report.md", *pictures):
            (report_folder / file).write_text(name)
        (report_folder / "report.json").write_text(json.dumps({"name": name, "ran": ran}))
        publish({"report": report_folder}, tmp_path / "build", {"stages": []})

    def names_in(folder: str) -> tuple[str, str, list[str]]:
        place = tmp_path / "build" / folder
        files = sorted(path.name for path in place.iterdir() if path.is_file())
        return json.loads((place / "report.json").read_text())["name"], (place / "report.md").read_text(), files

    board = {"place": "gdb://localhost:3333", "counter": "cycles by DWT", "chip": []}
    run("simulated", None)
    assert not (tmp_path / "build/on_board").exists()
    run("ran", board, "ranges.svg")
    pictured = ["ranges.svg", "report.json", "report.md"]
    assert names_in("") == names_in("on_board") == ("ran", "ran", pictured)
    run("simulated again", None)
    assert names_in("")[:2] == ("simulated again", "simulated again")
    assert names_in("on_board") == ("ran", "ran", pictured)
    run("ran again", board)
    assert names_in("on_board") == ("ran again", "ran again", pictured[1:])
