"""One convention for arguments: `key=value` selects, `--flag` switches; other spellings mean the same."""

from typing import Any

import pytest
from doit.cmd_base import NamespaceTaskLoader
from doit.cmdparse import CmdParseError
from doit.plugin import PluginDict

from pipeline.commands.command import options_first
from pipeline.commands.compare.command import _words
from pipeline.commands.dispatch import command_classes
from pipeline.errors import PipelineError


def ordered(line: str) -> list[str]:
    """Return the words of a command line in the order for doit's parser."""
    name, *words = line.split()
    made: Any = command_classes().get_plugin(name)
    command = made(task_loader=NamespaceTaskLoader(), config={}, bin_name="doit", cmds=PluginDict())
    return options_first(words, command.cmdparser, (*made.variables, *made.own_variables))


@pytest.mark.parametrize(
    ("line", "same"),
    [
        ("run a --target x,y", "run a target=x,y"),
        ("run a --target=x --set b=1", "run a target=x set=b=1"),
        ("run a targets=x", "run a target=x"),
        ("run --recipe a", "run recipe=a"),
        ("run a --run-on=gdb://h:1", "run a run_on=gdb://h:1"),
        ("run a dry_run=1", "run a --dry-run"),
        ("run a dry_run=0", "run a"),
        ("bench --targets x --only *y --models f --recipe r", "bench target=x only=*y model=f recipe=r"),
        ("bench --peer cmsis-nn=P --json F", "bench peer=cmsis-nn=P json=F"),
        ("gc --days 7 --size 2G", "gc days=7 size=2G"),
        ("store push --days 7 --dry-run", "store push days=7 dry-run=1"),
        ("compare a b --fail-above 1% --html F", "compare a b fail_above=1% html=F"),
        ("list --sort name --all", "list all=1 sort=name"),
    ],
)
def test_other_spellings_mean_the_same(line: str, same: str) -> None:
    def parts(words: list[str]) -> tuple[list[str], list[str]]:
        end = words.index("--")
        return sorted(words[:end]), sorted(words[end:])

    assert parts(ordered(line)) == parts(ordered(same))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("run a --target", "target= is empty"),
        ("run a --tragets x", "unknown option --tragets; did you mean target=?"),
        ("run a dry_run=2", "dry_run=2: expected 0 or 1"),
        ("gc days=", "days= needs a value: "),
        ("list sort=size", "sort=size: expected name or definition"),
        ("compare a b --check", "unknown option --check"),
    ],
)
def test_mistakes(line: str, message: str) -> None:
    with pytest.raises(CmdParseError) as caught:
        ordered(line)
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    ("named", "values", "expected"),
    [
        (["a"], {"target": "x,y"}, ("a@x", "a@y")),
        (["a", "b"], {"board": "x"}, ("a@x", "b@x")),
        (["a", "b"], {"target": "x,y"}, ("a@x", "b@y")),
        (["a@x", "git:HEAD"], {}, ("a@x", "git:HEAD")),
        (["a"], {"target": "x"}, "doit compare needs two sides, got 1"),
        (["a", "b"], {"target": "x,y,z"}, "doit compare needs two sides, got 3 targets"),
        (["a@z", "b"], {"target": "x"}, "a@z has a target; remove target="),
    ],
)
def test_sides_of_a_comparison(named: list[str], values: dict[str, str], expected: Any) -> None:
    if isinstance(expected, str):
        with pytest.raises(PipelineError, match=expected):
            _words(named, values)
    else:
        assert _words(named, values) == expected
