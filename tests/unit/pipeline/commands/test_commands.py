"""`doit explain`, `doit gc`, `doit schema`."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from doit import doit_cmd

from pipeline.commands import collect_garbage
from pipeline.commands import explain as explain_command
from pipeline.commands.collect_garbage import CollectGarbage
from pipeline.commands.exit_codes import PENDING
from pipeline.commands.explain import Explain
from tests.unit.pipeline.conftest import Capture, FakeProject


@pytest.fixture
def run_with_options(project: FakeProject, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Points the commands at the fake project; called with the `name=value` arguments of the command line."""
    project.serve(monkeypatch, explain_command, collect_garbage)

    def arguments(**variables: str) -> None:
        monkeypatch.setattr(doit_cmd, "_CMDLINE_VARS", variables)

    return arguments


def explain(*names: str, check: bool = False, code: bool = False) -> int:
    return Explain().execute({"check": check, "json": False, "code": code}, list(names))


def shown(text: str) -> list[str]:
    """Lines, with the time of the last run as NOW."""
    return re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d", "NOW", text).splitlines()


def test_explain(project: FakeProject, run_with_options: Callable[..., None], capsys: Capture) -> None:
    project.run()
    run_with_options(recipe="demo")
    assert explain(check=True) == 0
    assert "will run" not in capsys.readouterr().out
    run_with_options(recipe="demo", set="stages.compile.opt=O3")
    assert explain(code=True) == 0
    assert shown(capsys.readouterr().out) == [
        "demo on rv64-rvp, compared with its run of NOW, which had not set=stages.compile.opt=O3",
        "  import       cached",
        "    code: code, fake_stages.py",
        "  emit         cached",
        "    code: code, fake_stages.py",
        "  compile      will run",
        "    parameter opt: O2 -> O3",
        "    code: code, fake_stages.py",
        "  report       cached, if compile leaves the same bytes as before",
        "    code: code, fake_stages.py",
    ]
    assert explain(check=True) == PENDING
    run_with_options()
    assert explain("dem") == 1
    assert capsys.readouterr().err.startswith("ERROR: unknown recipe 'dem'; did you mean 'demo'?")
    project.ran()
    project.run()
    assert project.ran() == []


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        ({"days": "0", "size": ""}, 0, "deleted 4 artifacts"),
        ({"days": "", "size": ""}, 1, "ERROR: doit gc needs days=N, size=SIZE (such as 2G), or both"),
        ({"days": "", "size": "much"}, 1, "ERROR: doit gc: size=much: a size is a number of bytes"),
        ({"days": "soon", "size": ""}, 1, "ERROR: doit gc: days=soon: expected a number of days, such as 7"),
    ],
)
def test_gc(
    project: FakeProject,
    run_with_options: Callable[..., None],
    capsys: Capture,
    options: dict[str, Any],
    code: int,
    message: str,
) -> None:
    project.run()
    run_with_options()
    assert CollectGarbage().execute({**options, "json": False}, []) == code
    captured = capsys.readouterr()
    assert (captured.out + captured.err).startswith(message)
