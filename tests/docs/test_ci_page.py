"""The workflows here and on docs/tutorials/ci.md: YAML that parses, with commands, jobs and recipes that exist."""

import re
import shlex
import tomllib
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import yaml

from pipeline.commands.command import options_first
from pipeline.commands.dispatch import _new_command, command_classes
from pipeline.commands.new_project import new_project
from pipeline.plugins.registry import default_registry
from pipeline.recipes.loader import load_recipes
from stages.support.system.installation import INSTALLATION as ROOT

PAGE = (ROOT / "docs/tutorials/ci.md").read_text()
FENCED = re.findall(r"^```(\w*)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
BLOCKS = [yaml.safe_load(text) for language, text in FENCED if language == "yaml"]
PLAIN = [text for language, text in FENCED if not language]
WORKFLOWS = {path.name: yaml.safe_load(path.read_text()) for path in (ROOT / ".github/workflows").glob("*.yml")}
GITLAB = next(block for block in BLOCKS if "stages" in block)
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
GROUPS = {**PROJECT["project"]["optional-dependencies"], **PROJECT["dependency-groups"]}
# Of variables in commands.
VALUES = {"recipe": "kws_rvp", "target": "rv64-rvp", "github_base_ref": "main", "github_run_number": "7"}


def texts(value: Any) -> Iterator[str]:
    """All strings in a YAML value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for one in value.values() if isinstance(value, dict) else value:
            yield from texts(one)


def commands(values: Any) -> Iterator[list[str]]:
    """The words of each call of doit behind ./bootstrap, with values for variables."""
    for text in texts(values):
        for line in text.replace("\\\n", " ").splitlines():
            for found in re.findall(r"\./bootstrap(?: --with (\S+))? doit (.*?)(?:\)|\|\||;|$|>>)", line):
                groups, call = found
                for group in filter(None, groups.split(",")):
                    assert group in GROUPS, group
                yield shlex.split(re.sub(r"\$(\w+)", lambda m: VALUES[m[1].lower()], call))


ALL = [*commands(list(WORKFLOWS.values())), *commands(BLOCKS), *commands(PLAIN)]


@pytest.mark.parametrize("words", ALL, ids=" ".join)
def test_commands_are_taken_as_they_stand(words: list[str]) -> None:
    known = command_classes()
    assert words[0] in known
    command = _new_command(words[0], known)
    given = options_first(words[1:], command.cmdparser)
    for word in given[given.index("--") + 1 :]:
        name, is_variable, value = word.partition("=")
        if is_variable and not name.startswith("git:"):
            assert name in (*command.variables, *command.own_variables), word
        if name == "recipe" or (not is_variable and words[0] in ("run", "compare") and not word.startswith("git:")):
            assert load_recipes(value or word, root=ROOT, registry=default_registry())


def test_only_main_gets_the_token_that_writes() -> None:
    """By the expression on the page; and by an environment, since a pull request may change the workflow."""
    (shown,) = [block for block in BLOCKS if isinstance(block, dict) and "env" in block]
    main = "github.ref == 'refs/heads/main'"
    assert shown["env"] == {
        "FIRMLINE_REMOTE": "${{ vars.FIRMLINE_REMOTE }}",
        "FIRMLINE_REMOTE_TOKEN": (
            f"${{{{ {main} && secrets.FIRMLINE_REMOTE_TOKEN || secrets.FIRMLINE_REMOTE_READ_TOKEN }}}}"
        ),
        "FIRMLINE_REMOTE_READ_ONLY": "${{ github.ref != 'refs/heads/main' }}",
    }
    assert shown["jobs"]["recipe"]["environment"] == f"${{{{ {main} && 'main' || '' }}}}"
    read = {
        **shown["env"],
        "FIRMLINE_REMOTE_TOKEN": "${{ secrets.FIRMLINE_REMOTE_READ_TOKEN }}",
        "FIRMLINE_REMOTE_READ_ONLY": True,
    }
    for name, workflow in WORKFLOWS.items():
        # With others, such as pull_request_target, code of a pull request would run with the rights of main.
        assert {*workflow[True]} <= {"push", "pull_request", "schedule", "workflow_dispatch"}, name
        assert workflow.get("env", read) in (shown["env"], read), name
        for job in workflow["jobs"].values():
            assert "FIRMLINE_REMOTE" not in str(job) and "secrets" not in str(job), name
            assert job.get("environment", "") in ("", shown["jobs"]["recipe"]["environment"]), name
    assert WORKFLOWS["compare.yml"]["env"] == read
    assert "environment" in WORKFLOWS["ci.yml"]["jobs"]["recipe"]


def test_no_workflow_expands_a_value_in_a_command(tmp_path: Path) -> None:
    """A value that is `x;$(id)` would be read by the shell; through `env:` it is only a value."""
    new_project(tmp_path / "net")
    own = yaml.safe_load((tmp_path / "net/.github/workflows/firmware.yml").read_text())
    assert "secrets" not in str(own)
    snippets = [block for block in BLOCKS if isinstance(block, list)]
    steps = [step for flow in (*WORKFLOWS.values(), own) for job in flow["jobs"].values() for step in job["steps"]]
    steps += [step for snippet in snippets for step in snippet]
    scripts = [str(step.get("run", step.get("with", {}).get("script", ""))) for step in steps]
    assert sum(map(bool, scripts)) > 20
    assert [script for script in scripts if "${{" in script] == []
    # Behind quotes a value is one word.
    assert [
        script for script in scripts if re.search(r'(?m)^[^"\n]*("[^"\n]*"[^"\n]*)*\$(RECIPE|TARGET)', script)
    ] == []


def test_gitlab_runs_recipes_that_exist_and_merge_requests_only_read() -> None:
    for entry in GITLAB["recipe"]["parallel"]["matrix"]:
        for recipe, target in product(entry["RECIPE"], entry["TARGET"]):
            found = load_recipes(recipe, root=ROOT, registry=default_registry(), variables={"target": target})
            assert {one.target.name for one in found} == {target}
    read_only = [rule["variables"]["FIRMLINE_REMOTE_READ_ONLY"] for rule in GITLAB["workflow"]["rules"]]
    assert read_only == ["0", "1"] and "merge_request_event" in GITLAB["workflow"]["rules"][1]["if"]
