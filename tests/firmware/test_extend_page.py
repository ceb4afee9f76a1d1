"""docs/extend.md is true: its files are written into a new project, its commands run and print what it says."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from pipeline.new_project import new_project
from pipeline.session import ROOT

PAGE = (ROOT / "docs/extend.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NAMED = re.compile(r"^(?:# |/\* )(\S+/\S+|pipeline\.yaml)(?: \*/)?\n")
COMPILERS = ("arm-none-eabi-gcc", "riscv64-unknown-elf-gcc")


def doit(folder: Path, line: str) -> str:
    """What a command prints, from both of its streams."""
    command, *words = line.split()
    assert command == "doit", line
    arguments = [sys.executable, "-m", "firmline", *words]
    environment = {
        "PATH": f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin",
        "PYTHONPATH": str(ROOT),
        "COLUMNS": "200",
        "HOME": str(folder),
    }
    done = subprocess.run(arguments, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


@pytest.mark.skipif(not all(map(shutil.which, COMPILERS)), reason=f"needs {' and '.join(COMPILERS)}")
def test_the_page(tmp_path: Path) -> None:
    folder = tmp_path / "my_project"
    new_project(folder)
    printed, ran, written = "", 0, []
    for language, text in BLOCK.findall(PAGE):
        if language == "sh":
            printed = "\n".join(doit(folder, line) for line in text.splitlines())
            ran += 1
        elif language == "text":
            for line in text.splitlines():
                assert line in printed, f"{line!r} is not in what was printed:\n{printed}"
        else:
            name = NAMED.match(text)
            assert name is not None, text
            path = folder / name[1]
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text.partition("\n")[2])
            written.append(name[1])
    assert ran == 5
    assert {name.split("/")[1] for name in written if name.startswith("plugins/")} == {"kernels", "stages", "targets"}
