"""The pages docs/how-to/add_*.md are true: their files are written, their commands run, and they print what they say.

Each in a project that `doit init` makes; operators of TFLite's schema, in a copy of the repository.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pipeline.commands.new_project import new_project
from stages.support.system.installation import INSTALLATION as ROOT

PAGES = {path.stem: path.read_text(encoding="utf-8") for path in sorted((ROOT / "docs/how-to").glob("add_*.md"))}
CUSTOM, IN_TREE = PAGES["add_operator"].split("\n## ")[1:]
# What each page makes in a project's plugins/.
KINDS = {
    "add_board": {"targets"},
    "add_instructions": {"kernels", "targets"},
    "add_kernel": {"kernels", "targets"},
    "add_model": {"models"},
    "add_operator": {"kernels", "operators", "targets"},
    "add_stage": {"stages"},
}
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NAMED = re.compile(r"^(?:# |/\* )(\S+/\S+|pipeline\.yaml)(?: \*/)?\n")


def ran(folder: Path, line: str) -> str:
    """What a command of the page prints, on both of its streams."""
    words = line.removeprefix("./bootstrap ").split()
    assert words[0] == "doit", line
    root = folder if line.startswith("./bootstrap") else ROOT
    environment = {
        "PATH": f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin",
        "PYTHONPATH": f"{root}:{root}/pipeline/wheel",
        "COLUMNS": "200",
        "HOME": str(folder),
    }
    command = [sys.executable, "-m", "firmline", *words[1:]]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


def follow(text: str, folder: Path) -> Iterator[str]:
    """Do what a page, or a part of one, says; gives the names of the files that it writes."""
    printed = ""
    for language, block in BLOCK.findall(text):
        if language == "sh":
            printed = "\n".join(ran(folder, line) for line in block.splitlines())
        elif language == "text":
            assert printed
            for line in block.splitlines():
                assert line in printed, f"{line!r} is not in what was printed:\n{printed}"
        else:
            yield write(block, folder)


def write(block: str, folder: Path) -> str:
    """Make the file that a block has, with its name in the first line, which is returned."""
    name = NAMED.match(block)
    assert name is not None, block
    (folder / name[1]).parent.mkdir(parents=True, exist_ok=True)
    (folder / name[1]).write_text(block.partition("\n")[2])
    return name[1]


@pytest.mark.parametrize("page", PAGES)
def test_what_a_page_says_of_projects(page: str, tmp_path: Path) -> None:
    folder = tmp_path / "my_project"
    new_project(folder)
    text = PAGES[page].removesuffix(IN_TREE)
    assert {name.split("/")[1] for name in follow(text, folder) if name.startswith("plugins/")} == KINDS[page]


def suite_of(project: Path, *options: str) -> tuple[int, str]:
    """The status of the conformance suite over a project's kernels, and what it prints."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/conformance", *options]
    environment = {**os.environ, "FIRMLINE_PROJECT": str(project)}
    suite = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    return suite.returncode, suite.stdout


def test_the_conformance_suite_holds_the_kernels_of_a_project(tmp_path: Path) -> None:
    folder = tmp_path / "my_project"
    new_project(folder)
    for language, block in BLOCK.findall(PAGES["add_kernel"] + CUSTOM):
        if language not in ("sh", "text"):
            write(block, folder)
    assert "FIRMLINE_PROJECT=path/to/my_project ./bootstrap pytest tests/conformance" in PAGES["add_kernel"]
    status, said = suite_of(folder)
    assert status == 0, said
    kernel = folder / "plugins/kernels/gate/__init__.py"
    kernel.write_text(re.sub(r'return "" if .*lies_as.*', 'return ""', kernel.read_text()))
    status, said = suite_of(folder, "-k", "gated-gate")
    assert status == 1 and re.search(r"gate\.row: .* NHWC NCHW: run 0: \d+ of \d+ differ", said), said


def test_what_the_page_says_of_operators_of_the_schema(tmp_path: Path) -> None:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in listed.splitlines():
        if not name.startswith("tests/") and (ROOT / name).is_file():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, tmp_path / name)
    assert list(follow(IN_TREE, tmp_path)) == [
        "stages/ir/operators/sign.py",
        "recipes/sign.yaml",
        "stages/ir/operators/relu_0_to_1.py",
        "stages/quantize/patterns/relu_0_to_1.py",
        "recipes/relu_0_to_1.yaml",
    ]
