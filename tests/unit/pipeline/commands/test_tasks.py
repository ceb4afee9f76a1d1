"""`doit run recipe=NAME`, through doit itself, in a project with small stages."""

import pytest

from pipeline.recipes.recipe_arguments import matching_recipes
from tests.unit.pipeline.conftest import RECIPE, Doit, FakeProject


def test_run_prints_a_line_per_stage_and_the_table(project: FakeProject, doit: Doit) -> None:
    code, out, err = doit("run", "recipe=demo")
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert [line.split()[:2] for line in lines[:4]] == [
        [kind, "ran"] for kind in ("import", "emit", "compile", "report")
    ]
    assert lines[4:] == ["42 instructions, 4 stages", "build/demo/rv64-rvp/"]
    project.ran()
    code, out, _ = doit("recipe=demo")
    assert [line.split()[1] for line in out.splitlines()[:4]] == ["cached"] * 4
    assert project.ran() == []


def test_several_targets_share_stages_and_have_a_build_folder_each(project: FakeProject, doit: Doit) -> None:
    """Only the keys of emit and report have the target, so import and compile run once."""
    code, out, err = doit("run", "demo:compile", "target=host,rv32-rvp")
    assert (code, err) == (0, "")
    assert sorted(project.ran()) == ["compile", "emit", "emit", "import"]
    names = ["host:import", "rv32-rvp:import", "host:emit", "rv32-rvp:emit", "host:compile", "rv32-rvp:compile"]
    assert sorted(line.split()[0] for line in out.splitlines()) == sorted(f"demo@{name}" for name in names)
    assert not (project.root / "build/demo/host/report.json").exists()
    assert doit("run", "-a", "demo:compile", "target=host,rv32-rvp")[0] == 0
    assert sorted(project.ran()) == ["compile", "emit", "emit", "import"]
    code, out, err = doit("run", "demo", "board=host, rv32-rvp,host,")
    assert (code, err, project.ran()) == (0, "", ["report", "report"])
    assert [line for line in out.splitlines() if "/" in line] == ["build/demo/host/", "build/demo/rv32-rvp/"]
    for target in ("host", "rv32-rvp"):
        assert (project.root / "build/demo" / target / "report.json").exists()
    code, out, err = doit("run", "demo", "target=host,zzz")
    assert "target=zzz: unknown target 'zzz'" in err


def test_crash_is_short_and_points_to_the_log(
    project: FakeProject, doit: Doit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_MOOD", "crash")
    code, _, err = doit("recipe=demo")
    assert code == 1
    assert err == ("ERROR: emit: unexpected KeyError: 'bug in emit'\nthe traceback is in build/demo/rv64-rvp/log.txt\n")
    monkeypatch.setenv("FIRMLINE_TRACEBACK", "1")
    _, _, err = doit("recipe=demo")
    assert "Traceback (most recent call last)" in err


def test_list_shows_recipes_and_their_stages(doit: Doit) -> None:
    code, out, _ = doit("list")
    assert (code, out.split()[0]) == (0, "demo")
    code, out, _ = doit("list", "--all", "recipe=demo")
    assert code == 0
    stages = [f"demo:{kind}" for kind in ("compile", "emit", "import", "publish", "report")]
    assert [line.split()[0] for line in out.splitlines()] == ["demo", *stages]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("run -n 2 demo", ["demo"]),
        ("run 'd*'", ["demo", "dune"]),
        ("run dune:kws-host", ["dune:kws-host"]),
        ("run dune:kws-host:emit dune:ad-host", ["dune:kws-host", "dune:ad-host"]),
        ("run dune dune:kws-host", ["dune"]),
        ("run recipe=demo unknown", []),
    ],
)
def test_recipes_are_named_by_their_tasks(project: FakeProject, words: str, expected: list[str]) -> None:
    project.recipe(RECIPE, "dune")
    assert matching_recipes(words.replace("'", "").split(), project.root, project.registry) == expected
