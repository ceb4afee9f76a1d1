"""Commands that run recipes ask for a missing group of Python packages as `doit run` does."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pipeline.commands import calibrate, search
from pipeline.commands.bench import run as bench
from pipeline.commands.bench.cases import Case
from pipeline.errors import ToolError
from pipeline.keys import tools
from pipeline.terminal.progress import ProgressDisplay
from stages.system.installation import INSTALLATION as ROOT
from tests.support.optional import needs

NETWORK = {"schema": 1, "extends": "digits_onnx"}


def run_bench() -> None:
    with bench.recipe_runner(ROOT, ProgressDisplay(), 1) as runner:
        runner(Case("digits", "rv64-rvp", NETWORK, "digits_onnx"))


COMMANDS: dict[str, Callable[[], object]] = {
    "calibrate": lambda: calibrate._run(
        {"target": "rv32-rvp", "recipes": "digits_onnx"}, {"all": False, "check": True}
    ),
    "search": lambda: search._run({"recipe": "digits_onnx_ptq"}),
    "bench": run_bench,
}


@pytest.mark.parametrize(
    "command", ["calibrate", pytest.param("search", marks=needs("ai_edge_quantizer", "ptq")), "bench"]
)
def test_a_missing_group_is_asked_for(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    found = tools._package_version

    def install(group: str) -> bool:
        asked.append(group)
        return False

    monkeypatch.setattr(tools, "_package_version", lambda name: "" if name.startswith("onnx") else found(name))
    for module in (calibrate, search, bench):
        monkeypatch.setattr(module, "install", install)
    with pytest.raises(ToolError, match="Python package onnx is not installed"):
        COMMANDS[command]()
    assert asked == ["onnx"]
