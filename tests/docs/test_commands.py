"""Commands on the pages mean something, and those in blocks run.

Every `doit …` of every page is parsed: the command, its options and arguments, the recipes that it names. Blocks run
with `FIRMLINE_DOCS=all pytest --all tests/docs`, which takes some minutes and runs the sessions of test_pages.py.
"""

import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from doit.cmd_base import NamespaceTaskLoader
from doit.cmdparse import CmdParseError
from doit.plugin import PluginDict

from pipeline.commands.command import options_first
from pipeline.commands.dispatch import command_classes
from pipeline.documents.document import parse_value
from pipeline.documents.pyproject import pyproject_table
from pipeline.plugins.registry import default_registry
from pipeline.project import Project
from pipeline.recipes.recipe_arguments import matching_recipes
from stages.support.system.installation import INSTALLATION as ROOT
from tests.docs.test_pages import clone

__all__ = ["clone"]

PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SPAN = re.compile(r"`((?:\S*bootstrap )?doit [^`\n]+)`")
LINE = re.compile(r"(?:^|\s|/)(?:doit|firmline) (?=[a-z])(.*)")
COMMANDS = pyproject_table("tool", "doit", "plugins", "command")
# Commands whose words are recipes; one that is not there is in capitals, has an ellipsis, or is of a page's project.
OF_RECIPES = ("run", "explain", "list", "search")
OWN = re.compile(r"[A-Z]{2}|…|\.\.\.|/.*\.yaml$|^(my_project|line_by_line|digits_project)$")
# Pages whose recipes are those that they write.
WRITERS = ("accelerator.md", *(page.name for page in PAGES if page.name.startswith("add_")))
# Blocks whose commands are not of this machine alone, or that another test runs.
ELSEWHERE = {
    "accelerator.md": "tests/firmware/test_accelerator_page.py",
    "distributed.md": "other machines",
    **dict.fromkeys(
        (page.name for page in PAGES if page.name.startswith("add_")), "tests/firmware/test_extend_page.py"
    ),
    "cortex_m.md": "a session",
    "riscv_isa.md": "a session",
    "store.md": "a session",
    "ne16.md": "needs a checkout",
    "CONTRIBUTING.md": "writes lock files",
}
# What makes the clone a repository, whose main is that of `origin`.
GIT = (
    ("init", "-b", "main"),
    ("add", "--all"),
    ("-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "-m", "all"),
    ("update-ref", "refs/remotes/origin/main", "HEAD"),
)
LINES_ELSEWHERE = ("peer=", "pip install", "env/bin/firmline", "run_on=")


def lines(text: str) -> Iterator[str]:
    """Lines of shell, with continued ones in one and without comments."""
    for line in text.replace("\\\n", " ").splitlines():
        yield re.split(r"\s{2,}#? ?(?=[a-zA-Z])", line, maxsplit=1)[0] if "#" not in line else line.partition("#")[0]


def commands() -> Iterator[tuple[str, str]]:
    """Page and words of each command after `doit`, of blocks and of code in sentences."""
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        blocks = [line for language, block in BLOCK.findall(text) if language in ("", "sh") for line in lines(block)]
        for line in (*blocks, *SPAN.findall(BLOCK.sub("", text))):
            if found := LINE.search(line):
                yield page.name, found[1].split("&&")[0].strip()


def mistake(typed: str, recipes: bool = True) -> str:
    """What a command line means nothing by, '' where all is known, with `recipes` those too."""
    words = shlex.split(re.sub(r"[\[\]]| \| .*", "", typed) if "[" in typed and "=[" not in typed else typed)
    name, *rest = words
    if name not in COMMANDS:
        known = name == "help" or not recipes or matching_recipes([name], Project(ROOT), default_registry())
        return "" if known else f"no command {name}"
    made: Any = command_classes().get_plugin(name)
    command = made(task_loader=NamespaceTaskLoader(), config={}, bin_name="doit", cmds=PluginDict())
    try:
        given = options_first(rest, command.cmdparser, (*made.variables, *made.own_variables))
    except CmdParseError as error:
        # A sentence may name an option without its value.
        return "" if str(error).endswith(" is empty") or " needs a value" in str(error) else str(error)
    for word in given[given.index("--") + 1 :]:
        option, equals, value = word.partition("=")
        if equals and option not in (*made.variables, *made.own_variables):
            return f"doit {name} takes no {option}="
        named = option in ("recipe", "recipes") if equals else name in OF_RECIPES
        for recipe in (value or word).split(",") if named and recipes else ():
            if wrong := _no_recipe(recipe):
                return wrong
        if option == "layer":
            assert parse_value(value)["op"]
    return ""


def _no_recipe(word: str) -> str:
    """What is wrong with a recipe's name."""
    if OWN.search(word) or word in ("a", "b"):
        return ""
    return "" if matching_recipes([word.partition(":")[0]], Project(ROOT), default_registry()) else f"no recipe {word}"


def test_all_commands_on_the_pages_mean_something() -> None:
    found = list(commands())
    assert len(found) > 120
    wrong = {f"{page}: doit {typed}": told for page, typed in found if (told := mistake(typed, page not in WRITERS))}
    assert wrong == {}


def scripts(page: Path) -> list[str]:
    """The blocks of a page with a command of this project."""
    found = (block for language, block in BLOCK.findall(page.read_text()) if language in ("", "sh"))
    return [block for block in found if any(map(LINE.search, lines(block)))]


RUNNING = [page for page in PAGES if page.name not in ELSEWHERE and scripts(page)]


@pytest.mark.skipif(os.environ.get("FIRMLINE_DOCS") != "all", reason="FIRMLINE_DOCS=all runs the blocks of all pages")
@pytest.mark.parametrize("page", RUNNING, ids=lambda page: page.name)
def test_blocks_run(page: Path, clone: Path) -> None:
    model = ROOT / "recipes/digits/digits_int8.tflite"
    shutil.copy(model, clone / "net.tflite")
    for command in GIT:
        subprocess.run(["git", *command], cwd=clone, check=True, capture_output=True)
    if page.name == "recipe_line_by_line.md":
        first = next(block for language, block in BLOCK.findall(page.read_text()) if language == "yaml")
        (clone / "recipes/line_by_line.yaml").write_text(first)
    script = ["set -eu"]
    for block in scripts(page):
        script += [line for line in lines(block) if not any(word in line for word in LINES_ELSEWHERE)]
    # That stored figures are stale, which exit code 3 tells, is no fault of a page.
    script = [f"{line} || [ $? = 3 ]" if " --check" in line else line for line in script]
    text = re.sub(r"\S*bootstrap ", "", "\n".join(script)).replace("path/to/model.tflite", "net.tflite")
    text = text.replace("doit init my_project", "doit init ../my_project").replace("cd my_project", "cd ../my_project")
    environment = {**os.environ, "PATH": f"{clone.parent / 'bin'}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(["bash", "-c", text], cwd=clone, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{text}\n{done.stdout[-2000:]}{done.stderr}"
