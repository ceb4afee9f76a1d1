"""`doit compare`."""

import json
import subprocess
from collections.abc import Callable
from html.parser import HTMLParser
from typing import Any

import pytest

from pipeline.commands.compare import command, formats
from pipeline.commands.compare.command import Compare
from pipeline.commands.compare.difference import difference
from tests.unit.pipeline.conftest import Capture, FakeProject

OPTIONS = {"all": False, "markdown": "", "html": "", "json": False, "fail-above": ""}


def layer(name: str, instructions: int | None, kernel: str = "generic.conv2d") -> dict[str, Any]:
    return {"name": name, "op": "conv2d", "instructions": instructions, "kernel": kernel, "shape_out": [1, 8]}


def report(*layers: dict[str, Any], total: int | None = 1000, rom: int | None = 500, **changes: Any) -> dict[str, Any]:
    memory = {"ram_bytes": 300, "rom_bytes": rom, "arena_bytes": 200, "stack_bytes": 64, "weights_bytes": 100}
    usual = {"format": 1, "model": {"macs": 10}, "target": "cortex-m4", "instructions": {"total": total}}
    return {**usual, "memory": memory, "layers": list(layers), "cycles": None, "verify": None, **changes}


def estimate(model: str, total: int) -> dict[str, Any]:
    return {"estimated_cycles": {"model": model, "total": total}}


def accurate(share: float) -> dict[str, Any]:
    return report(verify={"mismatches": 0, "accuracy": {"ours": share}})


@pytest.fixture
def compare(project: FakeProject, monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    """Compares two reports, or what words name; options by name."""
    project.serve(monkeypatch, command)
    monkeypatch.chdir(project.root)

    def run(*sides: dict[str, Any] | str, **options: Any) -> int:
        words = []
        for number, side in enumerate(sides):
            if isinstance(side, dict):
                project.write(f"{number}.json", json.dumps(side))
            words.append(side if isinstance(side, str) else f"{number}.json")
        values = {name.replace("_", "-"): value for name, value in options.items()}
        return Compare().execute({**OPTIONS, **values}, words)

    return run


def test_layers_are_matched_by_name_and_sorted_by_effect() -> None:
    before = report(layer("a", 100), layer("b", 200), layer("gone", 5), layer("twice", 1), layer("twice", 2))
    after = report(layer("b", 150), layer("a", 101), layer("new", 7), layer("twice", 1), layer("twice", 9))
    comparison = difference(("A", "B"), before, after)
    assert [(layer.name, layer.before, layer.after) for layer in comparison.layers] == [
        ("b", 200, 150),
        ("new", None, 7),
        ("twice", 2, 9),
        ("gone", 5, None),
        ("a", 100, 101),
        ("twice", 1, 1),
    ]


def test_what_is_printed(compare: Callable[..., int], capsys: Capture) -> None:
    before = report(layer("x/a", 100), layer("b", 7))
    after = report(layer("x/a", 50, "rvp.gemm_s8"), layer("b", 7), total=900)
    assert compare(before, after) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["instructions", "1,000", "900", "-100", "-10.00"] in lines
    assert ["x/a", "conv2d", "100", "50", "-50", "-50.00", "generic.conv2d", "->", "rvp.gemm_s8"] in lines
    assert ["1", "of", "2", "layers", "have", "the", "same", "instructions"] in lines
    assert compare(before, after, json=True) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["totals"][0]["percent"] == -10 and printed["layers"][0]["by"] == -50


@pytest.mark.parametrize(
    ("before", "after", "limit", "grown"),
    [
        (report(), report(total=1010), "1%", []),
        (report(), report(total=1011), "1%", ["instructions"]),
        (report(), report(rom=506), "1 %", ["ROM"]),
        (report(), report(total=None), "0%", []),
        (report(total=5, cycles={"total": 5}), report(total=6, cycles={"total": 6}), "0", ["cycles"]),
        (report(total=5, cycles={"total": 5}), report(total=6), "0", ["cycles / instructions"]),
        (report(**estimate("a", 5)), report(**estimate("a", 6)), "0", ["estimated cycles"]),
        (accurate(0.97), accurate(0.955), "1%", ["accuracy"]),
    ],
)
def test_what_may_not_grow(
    before: dict[str, Any],
    after: dict[str, Any],
    limit: str,
    grown: list[str],
    compare: Callable[..., int],
    capsys: Capture,
) -> None:
    assert compare(before, after, fail_above=limit) == (3 if grown else 0)
    assert [line.partition(":")[0] for line in capsys.readouterr().err.splitlines()] == grown


def test_cycles_of_two_timing_models_are_distinguished(
    compare: Callable[..., int], project: FakeProject, capsys: Capture
) -> None:
    note = "estimated cycles not compared: A uses timing model a-m4, B uses b-m0"
    two = report(**estimate("a-m4", 5)), report(**estimate("b-m0", 6))
    page = project.root / "page.html"
    assert compare(*two, html=str(page)) == 0
    assert note in capsys.readouterr().out.splitlines() and f"<p>{note}</p>" in page.read_text()
    assert compare(*two, json=True) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["notes"] == [note] and "estimated cycles" not in [total["name"] for total in printed["totals"]]
    for other in (report(), report(**estimate("a-m4", 6))):
        assert compare(report(**estimate("a-m4", 5)), other, json=True) == 0
        printed = json.loads(capsys.readouterr().out)
        assert printed["notes"] == [] and "estimated cycles" in [total["name"] for total in printed["totals"]]


def test_pages(compare: Callable[..., int], project: FakeProject, capsys: Capture) -> None:
    hostile = "<script>x<|a"
    before, after = report(layer(hostile, 100)), report(layer(hostile, 50))
    assert compare(before, after, markdown="page.md", html=str(project.root / "page.html")) == 0
    page = (project.root / "page.html").read_text()
    assert "<script>x" not in page and "+0" in page
    HTMLParser().feed(page)
    table = [line for line in (project.root / "page.md").read_text().splitlines() if "script" in line]
    assert len(table) == 1 and table[0].replace("\\|", "").count("|") == len(formats._LAYERS) + 1
    capsys.readouterr()
    assert compare(before, after, markdown="-") == 0
    assert capsys.readouterr().out == (project.root / "page.md").read_text()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("demo",), "doit compare needs two sides, got 1"),
        (("nope.json", "demo"), "nope.json cannot be read: No such file or directory"),
        (("git:HEAD", "git:HEAD~1"), "one of the revisions needs a recipe"),
        (("git:HEAD", "0.json"), "0.json is a file, so git:HEAD needs a recipe"),
        (("git:--help:demo", "demo"), "is not a revision"),
        (("list.json", "0.json"), "list.json is not a report of a run"),
    ],
)
def test_what_cannot_be_compared(
    words: tuple[str, ...], message: str, compare: Callable[..., int], project: FakeProject, capsys: Capture
) -> None:
    project.write("list.json", "[]")
    project.write("damaged.json", "{")
    project.write("0.json", json.dumps(report()))
    assert compare(*words) == 1
    assert message in capsys.readouterr().err


def test_a_revision_is_run_in_a_tree_of_its_own(
    compare: Callable[..., int], project: FakeProject, capsys: Capture
) -> None:
    """The revision's own code and recipes; the tree is gone afterwards, also when it does not run."""

    def git(*words: str) -> None:
        identity = ("-c", "user.name=n", "-c", "user.email=e@x", "-c", "commit.gpgsign=false")
        subprocess.run(["git", *identity, *words], cwd=project.root, check=True, capture_output=True)

    # The revision has a program in place of Firmline's, which leaves a report.
    project.write("then.json", json.dumps(report(layer("a", 5), total=5)))
    program = (
        "import pathlib, shutil\n"
        "place = pathlib.Path('build/demo/x')\n"
        "place.mkdir(parents=True)\n"
        "shutil.copy('then.json', place / 'report.json')\n"
    )
    project.write("firmline/__init__.py", "")
    project.write("firmline/__main__.py", program)
    git("init", "-q")
    git("add", "firmline", "recipes", "pipeline.yaml", "then.json")
    git("commit", "-q", "-m", "first")
    project.write("firmline/__main__.py", "import sys\nsys.exit('it fails')\n")
    git("commit", "-q", "-a", "-m", "second")
    project.write("0.json", json.dumps(report(layer("a", 7), total=7)))
    assert compare("git:HEAD~1:demo", "0.json") == 0
    assert "+2" in capsys.readouterr().out
    assert compare("git:HEAD:demo", "0.json") == 1
    assert capsys.readouterr().err == "ERROR: demo fails at revision HEAD\nit fails\n"
    assert compare("git:nope:demo", "0.json") == 1
    assert "git finds no revision nope" in capsys.readouterr().err
    assert not (project.root / ".git/worktrees").exists()


def test_cycles_of_a_board_are_not_set_against_instructions(
    compare: Callable[..., int], project: FakeProject, capsys: Capture
) -> None:
    ran = report(layer("a", 10), total=500, ran={"place": "gdb://x:3333", "counter": "cycles by DWT", "chip": []})
    simulated = report(layer("a", 90), total=9000)
    assert compare(ran, simulated, fail_above="1%") == 0
    out, err = capsys.readouterr()
    rows = [line.split() for line in out.splitlines()]
    assert ["cycles", "by", "DWT", "500", "-", "-"] in rows and ["instructions", "-", "9,000", "-"] in rows
    assert not any(row[:1] == ["a"] for row in rows)
    note = "A counts cycles by DWT, B instructions"
    assert note in out and note in err
    assert compare(simulated, ran, html="page.html", fail_above="1%") == 0
    assert "A counts instructions, B cycles by DWT" in capsys.readouterr().out
    assert "<h2>Layers" not in (project.root / "page.html").read_text()
    # Of memory the limit still holds.
    assert compare(ran, {**simulated, "memory": {**simulated["memory"], "rom_bytes": 900}}, fail_above="1%") == 3
