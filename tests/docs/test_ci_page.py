"""The workflows here and on docs/ci.md: YAML that parses, with commands, jobs and recipes that exist."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from pipeline.commands.bench.suite import load_suite
from pipeline.commands.command import _parsed
from pipeline.commands.dispatch import _commands, _made
from pipeline.plugins.registry import default_registry
from pipeline.recipes.loader import load_recipes
from stages.system.installation import INSTALLATION as ROOT

PAGE = (ROOT / "docs/ci.md").read_text()
FENCED = re.findall(r"^```(\w*)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
BLOCKS = [yaml.safe_load(text) for language, text in FENCED if language == "yaml"]
PLAIN = [text for language, text in FENCED if not language]
WORKFLOWS = {path.name: yaml.safe_load(path.read_text()) for path in (ROOT / ".github/workflows").glob("*.yml")}
GITLAB = next(block for block in BLOCKS if "stages" in block)
# Of a job in GitLab, as its reference has them (docs.gitlab.com/ci/yaml).
KEYWORDS = {
    "stage",
    "parallel",
    "cache",
    "script",
    "artifacts",
    "rules",
    "variables",
    "before_script",
    "image",
    "needs",
}
GLOBAL = {"stages", "default", "workflow", "variables", "include"}
# What a workflow puts in for a name.
RECIPE, TARGET = "kws_rvp", "rv64-rvp"


def texts(value: Any) -> Iterator[str]:
    """All strings in a YAML value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for one in value.values() if isinstance(value, dict) else value:
            yield from texts(one)


def commands(values: Any) -> Iterator[list[str]]:
    """The words of each call of doit behind ./bootstrap, with what a matrix would put in."""
    for text in texts(values):
        for line in text.replace("\\\n", " ").splitlines():
            for found in re.findall(r"\./bootstrap(?: --with (\S+))? doit (.*?)(?:\)|\|\||;|$|>>)", line):
                groups, call = found
                for group in filter(None, groups.split(",")):
                    assert (ROOT / f"requirements-{group}-lock.txt").is_file(), group
                call = re.sub(r"\$\{\{ matrix\.(\w+) \}\}|\$([A-Z]+)\b", lambda m: put_in(m[1] or m[2]), call)
                yield shlex.split(call.replace("$recipe", RECIPE).replace("$GITHUB_BASE_REF", "main"))


def put_in(name: str) -> str:
    return {"recipe": RECIPE, "target": TARGET}[name.lower()]


ALL = [*commands(list(WORKFLOWS.values())), *commands(BLOCKS), *commands(PLAIN)]


@pytest.mark.parametrize("words", ALL, ids=" ".join)
def test_commands_are_taken_as_they_stand(words: list[str]) -> None:
    known = _commands()
    assert words[0] in known
    command = _made(words[0], known)
    _, given = _parsed(words[1:], command.cmdparser, words[0])
    for word in given:
        name, is_variable, value = word.partition("=")
        if is_variable and not name.startswith("git:"):
            assert name in (*command.variables, *command.own), word
        if name == "recipe" or (not is_variable and words[0] in ("run", "compare") and not word.startswith("git:")):
            assert load_recipes(value or word, root=ROOT, registry=default_registry())


def test_there_are_as_many_as_the_pages_show() -> None:
    """None is missed by the pattern that finds them."""
    files = [path.read_text() for path in (ROOT / ".github/workflows").glob("*.yml")]
    shown = "\n".join([*files, *(text for _, text in FENCED)])
    assert len(ALL) == len(re.findall(r"bootstrap .*?doit ", shown)) >= 10


def test_workflows_that_the_page_names_are_files() -> None:
    named = re.findall(r"`(\.github/workflows/[\w.-]+)`", PAGE)
    assert named and all((ROOT / name).is_file() for name in named)
    for name, workflow in WORKFLOWS.items():
        for job in workflow["jobs"].values():
            needs = job.get("needs", [])
            assert {*([needs] if isinstance(needs, str) else needs)} <= workflow["jobs"].keys(), name
            for step in job["steps"]:
                assert ("uses" in step) != ("run" in step)
                assert re.fullmatch(r"[\w-]+/[\w-]+@v\d+", step.get("uses", "actions/checkout@v4"))


def test_stale_figures_fail_once_a_week_and_arm_is_measured_on_each_change() -> None:
    steps = WORKFLOWS["figures.yml"]["jobs"]["figures"]["steps"]
    runs = [step["run"] for step in steps if " bench " in step.get("run", "")]
    drawn = "suite=layers drawn=400 seed=${{ github.run_number }} --check --targets rv64-rvp,rv32-rvp"
    assert [run.removeprefix("./bootstrap doit bench ") for run in runs] == [
        "--check -n 2",
        "suite=layers --check",
        drawn,
    ]
    choices = WORKFLOWS["figures.yml"]["jobs"]["choices"]
    assert {*choices["strategy"]["matrix"]["target"]} >= {*load_suite().layers.targets}
    assert choices["steps"][-1]["run"].endswith(" drawn=200 seed=${{ github.run_number }}")  # others each week
    held = re.findall(r"calibrate target=(\S+) --cycles --check", "".join(step.get("run", "") for step in steps))
    assert {*held} == {file.stem for file in (ROOT / "stages/kernels/costs/cycles").glob("*.json")}
    assert "schedule" in WORKFLOWS["figures.yml"][True]  # YAML's own word for `on`
    each = (ROOT / ".ci/run").read_text()
    (targets,) = re.findall(r"bench --check .*--targets (\S+)", each)
    measured = {(row.name, target) for row in load_suite().rows for target in row.targets}
    assert {"cortex-m4", "cortex-m55"} <= {*targets.split(",")}
    assert {(row, target) for row in ("digits", "ds_cnn") for target in ("cortex-m4", "cortex-m55")} <= measured


def test_the_remote_store_is_on_the_page_as_in_the_workflows() -> None:
    (shown,) = [block["env"] for block in BLOCKS if isinstance(block, dict) and "env" in block]
    assert shown.keys() == {"FIRMLINE_REMOTE", "FIRMLINE_REMOTE_TOKEN", "FIRMLINE_REMOTE_READ_ONLY"}
    # Of a branch, and of any pull request (refs/pull/…), it is only read.
    assert shown["FIRMLINE_REMOTE_READ_ONLY"] == "${{ github.ref != 'refs/heads/main' }}"
    for name, workflow in WORKFLOWS.items():
        assert workflow.get("env", shown) == shown, name
        for job in workflow["jobs"].values():
            assert not [text for text in texts([job.get("env"), job["steps"]]) if "FIRMLINE_REMOTE" in text], name


def test_gitlab_jobs_are_jobs() -> None:
    jobs = {name: job for name, job in GITLAB.items() if name not in GLOBAL}
    assert len(jobs) == 2 and {job["stage"] for job in jobs.values()} == set(GITLAB["stages"])
    for name, job in jobs.items():
        assert job.keys() <= KEYWORDS and job["script"], name
        assert not job.get("needs") or set(job["needs"]) <= jobs.keys()
    for entry in jobs["recipe"]["parallel"]["matrix"]:
        for recipe in entry["RECIPE"]:
            for target in entry["TARGET"]:
                found = load_recipes(recipe, root=ROOT, registry=default_registry(), variables={"target": target})
                assert {one.target.name for one in found} == {target}
    read_only = [rule["variables"]["FIRMLINE_REMOTE_READ_ONLY"] for rule in GITLAB["workflow"]["rules"]]
    assert read_only == ["0", "1"] and "merge_request_event" in GITLAB["workflow"]["rules"][1]["if"]


def test_artifacts_are_where_a_run_leaves_them() -> None:
    """The folders that are kept are those of a run's results."""
    kept = list(texts(GITLAB["recipe"]["artifacts"]["paths"]))
    assert {Path(text).name for text in kept} == {"matrix.*", "report.*", "log.txt", "firmware.elf"}
    assert all(text.startswith("build/$RECIPE/") for text in kept)
