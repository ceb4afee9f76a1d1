"""`doit run` of a matrix: rows, the table and its files, failures, two at a time."""

import json
from typing import Any

import pytest

from pipeline.commands import explain, matrix_json
from pipeline.commands.exit_codes import PENDING
from pipeline.commands.explain import Explain
from pipeline.commands.matrix_json import MatrixJson
from pipeline.terminal.matrix_run import verdict_of
from tests.unit.pipeline.conftest import Capture, Doit, FakeProject
from tests.unit.pipeline.fake_stages import FakeImport

MATRIX = """\
schema: 1
name: grid
matrix:
  model: {a: {file: a.txt}, b: {file: b.txt}}
  target: [rv64-rvp, rv64-scalar]
"""


@pytest.fixture
def grid(project: FakeProject) -> FakeProject:
    project.recipe(MATRIX, "grid")
    project.write("a.txt", "weights of a\n")
    project.write("b.txt", "weights of b\n")
    return project


def rows(project: FakeProject) -> list[dict[str, Any]]:
    content = json.loads((project.root / "build/grid/matrix.json").read_text())
    assert (content["format"], content["recipe"]) == (1, "grid")
    records: list[dict[str, Any]] = content["rows"]
    return records


def test_shared_stages_run_once_and_a_table_ends_it(grid: FakeProject, doit: Doit) -> None:
    code, out, err = doit("run", "recipe=grid")
    assert (code, err) == (0, "")
    # Both targets have the same word_bits, so only the report tells them apart.
    assert sorted(grid.ran()) == ["compile"] * 2 + ["emit"] * 2 + ["import"] * 2 + ["report"] * 4
    names = ("a-rv64-rvp", "a-rv64-scalar", "b-rv64-rvp", "b-rv64-scalar")
    shown = [line.split()[:2] for line in out.splitlines()[:4]]
    assert shown == [[f"{number}/4", name] for number, name in enumerate(names, 1)]
    assert out.splitlines()[-1] == "build/grid/matrix.html, matrix.md, matrix.json"
    assert [(row["axes"]["model"], row["target"], row["instructions"], row["error"]) for row in rows(grid)] == [
        (model, target, 42, "") for model in "ab" for target in ("rv64-rvp", "rv64-scalar")
    ]
    page = (grid.root / "build/grid/matrix.md").read_text().splitlines()
    assert page[2] == "| model | target | verdict | instructions | RAM | ROM |"
    assert page[4].startswith("| a | rv64-rvp | done | 42 |")
    assert len(page) == 8
    assert (grid.root / "build/grid/b-rv64-scalar/firmware.elf").read_text() == "O1 1 weights of b\n"
    assert doit("run", "recipe=grid")[0] == 0
    assert grid.ran() == []
    assert doit("run", "-a", "grid")[0] == 0
    assert sorted(grid.ran()) == ["compile"] * 2 + ["emit"] * 2 + ["import"] * 2 + ["report"] * 4


def test_two_at_a_time_give_the_same(grid: FakeProject, doit: Doit, monkeypatch: pytest.MonkeyPatch) -> None:
    grid.write("b.txt", "broken\n")
    folder = grid.root / "build/grid"
    sequential = doit("run", "recipe=grid")
    alone = [(folder / name).read_bytes() for name in ("matrix.json", "matrix.md", "matrix.html")]
    ran = sorted(grid.ran())
    monkeypatch.setenv("FIRMLINE_STORE", "another")
    monkeypatch.setenv("FAKE_MOOD", "slow")
    two = doit("run", "-n", "2", "-P", "thread", "recipe=grid")
    assert [(folder / name).read_bytes() for name in ("matrix.json", "matrix.md", "matrix.html")] == alone
    assert sorted(grid.ran()) == ran
    assert (sequential[0], sequential[2]) == (two[0], two[2])


def test_a_failure_is_a_row(grid: FakeProject, doit: Doit) -> None:
    grid.write("a.txt", "broken\n")
    code, out, err = doit("run", "recipe=grid")
    assert code == 1
    # Shared by two sub-recipes, it runs and is told once; both have it as their outcome.
    assert err == "ERROR: grid:a-rv64-rvp: import: model.txt is corrupt\nget another\n"
    assert grid.ran().count("import") == 2
    assert [row["error"] for row in rows(grid)] == ["import: model.txt is corrupt\nget another"] * 2 + [""] * 2
    assert [row["verdict"] for row in rows(grid)] == ["failed"] * 2 + ["done"] * 2
    assert "a-rv64-scalar failed: import: model.txt is corrupt" in out
    assert "| a | rv64-scalar | failed: import: model.txt is corrupt |" in (
        grid.root / "build/grid/matrix.md"
    ).read_text().replace("  ", " ")


def test_what_cannot_be_planned_is_a_row(grid: FakeProject, doit: Doit) -> None:
    (grid.root / "b.txt").unlink()
    code, _, err = doit("run", "recipe=grid")
    assert code == 1
    assert err.count("ERROR: grid:b-") == 2
    assert "recipes/grid.yaml:4:39: import: file b.txt does not exist" in err
    assert [row["verdict"] for row in rows(grid)] == ["done", "done", "failed", "failed"]
    (grid.root / "bin" / "fakecc").unlink()
    assert doit("run", "recipe=grid")[0] == 1
    assert rows(grid)[0]["error"].startswith("fakecc is not on PATH")


class Panic(BaseException):
    """What libraries in Rust raise."""


@pytest.mark.parametrize(("method", "error"), [("inputs", SystemExit), ("run", MemoryError), ("run", Panic)])
def test_no_exception_of_a_stage_ends_other_recipes(
    grid: FakeProject, doit: Doit, monkeypatch: pytest.MonkeyPatch, method: str, error: type[BaseException]
) -> None:
    real = getattr(FakeImport, method)

    def broken(*arguments: Any) -> Any:
        if any("b.txt" in str(argument) for argument in (*arguments, getattr(arguments[-1], "model", ""))):
            raise error("of b")
        return real(*arguments)

    monkeypatch.setattr(FakeImport, method, broken)
    code, _, err = doit("run", "recipe=grid")
    assert code == 1 and "import: " in err
    assert [(row["verdict"], bool(row["error"])) for row in rows(grid)] == [("done", False)] * 2 + [
        ("failed", True)
    ] * 2
    monkeypatch.setattr("doit.doit_cmd._CMDLINE_VARS", None)
    grid.recipe(MATRIX.partition("matrix:")[0].replace("grid", "bad") + "model: {file: b.txt}\ntarget: host\n", "bad")
    grid.ran()
    code, out, err = doit("run", "bad", "demo")
    assert code == 1 and err.startswith("ERROR: bad: import: ")
    assert grid.ran()[-1] == "report" and "build/demo/" in out


def part(project: FakeProject) -> str:
    folder = project.root / "build/grid"
    text = str(json.loads((folder / "matrix.json").read_text())["part"])
    page = (folder / "matrix.md").read_text().splitlines()
    assert page[:2] == ["# grid", ""]
    assert (page[2:4] == [text, ""]) if text else page[2].startswith("|")
    return text


def test_selection_restricts_the_table(grid: FakeProject, doit: Doit) -> None:
    assert doit("run", "grid:*-rv64-scalar")[0] == 0
    assert [row["name"] for row in rows(grid)] == ["a-rv64-scalar", "b-rv64-scalar"]
    assert part(grid) == "2 of the 4 combinations"
    assert doit("run", "grid", "target=rv32-rvp,rv64-rvp", "model=b,a")[0] == 0
    assert [row["name"] for row in rows(grid)] == ["b-rv32-rvp", "b-rv64-rvp", "a-rv32-rvp", "a-rv64-rvp"]
    assert part(grid) == "2 of the 4 combinations, and 2 that are not in the recipe"
    assert doit("run", "grid")[0] == 0
    assert part(grid) == ""


def test_explain_and_matrix_json(
    grid: FakeProject, doit: Doit, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    grid.serve(monkeypatch, explain, matrix_json)
    grid.run("grid:a-rv64-rvp")
    monkeypatch.setattr("doit.doit_cmd._CMDLINE_VARS", {"recipe": "grid", "model": "a"})
    assert Explain().execute({"check": True, "json": False, "code": False}, []) == PENDING
    assert capsys.readouterr().out.splitlines() == [
        "grid:a-rv64-rvp on rv64-rvp: cached",
        "grid:a-rv64-scalar on rv64-scalar, without a recorded run",
        "  report       will run",
        "    this recipe has not run this stage before",
    ]
    monkeypatch.setattr("doit.doit_cmd._CMDLINE_VARS", {})
    assert MatrixJson().execute({}, []) == 0
    assert json.loads(capsys.readouterr().out) == [
        {"recipe": "demo", "target": "rv64-rvp"},
        {"recipe": "grid", "target": "rv64-rvp"},
        {"recipe": "grid", "target": "rv64-scalar"},
    ]


def test_an_engines_arithmetic_is_not_called_litert() -> None:
    verify: dict[str, Any] = {"outputs_checked": 4800, "layers_checked": 13, "float": None, "distance": None}
    assert verdict_of(verify) == "exact, 4,800 values, 13 layers"
    verify["distance"] = {"outputs": {"share": 0.0321, "largest": 2.0}}
    expected = "exact in the engine's arithmetic, 3.2 % unlike LiteRT, 4,800 values, 13 layers"
    assert verdict_of(verify) == expected
    verify["near_ties"] = {"near": 3, "values": 100, "differing": 1, "layers": {}}
    expected = "exact but for near ties, 3.2 % unlike ONNX Runtime, 4,800 values, 13 layers"
    assert verdict_of(verify) == expected
