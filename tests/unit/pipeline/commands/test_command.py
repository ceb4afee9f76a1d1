"""Options of all commands."""

from __future__ import annotations

import pytest
from doit.cmdparse import CmdOption, CmdParse, CmdParseError

from pipeline.commands.command import options_first

PARSER = CmdParse(
    [
        CmdOption({"name": "only", "long": "only", "type": str, "default": "", "help": "names of rows"}),
        CmdOption({"name": "check", "long": "check", "type": bool, "default": False}),
        CmdOption({"name": "jobs", "long": "jobs", "short": "n", "type": int, "default": 1, "help": "how many"}),
    ]
)


def test_options_stand_anywhere() -> None:
    assert options_first(["a", "--check", "b", "-n2", "--onl=x"], PARSER) == [
        *("--check", "-n", "2", "--only", "x", "--"),
        *("a", "b"),
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--onyl", "x"], "unknown option --onyl; did you mean --only?\noptions: --only, --check, --jobs, -n"),
        (["-z"], "unknown option -z\noptions: --only, --check, --jobs, -n"),
        (["--targets", "x"], "unknown option --targets; did you mean target=?\noptions: --only, --check, --jobs, -n"),
        (["a", "--only"], "--only needs a value: names of rows"),
        (["-n"], "-n needs a value: how many"),
        (["--check=1"], "--check takes no value"),
        (["-n", "many"], "-n many: should be a number from 0 to 64"),
        (["-n", "-1"], "-n -1: should be a number from 0 to 64"),
    ],
)
def test_mistakes(arguments: list[str], message: str) -> None:
    with pytest.raises(CmdParseError) as caught:
        options_first(arguments, PARSER, ("target",))
    assert str(caught.value) == message
