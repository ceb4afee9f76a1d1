"""What is noted of a module is the source that runs, whatever the file and Python's bytecode say."""

import hashlib
import importlib
import os
from pathlib import Path

import pytest

from stages.support.system.installation import INSTALLATION as ROOT
from stages.support.system.loaded_code import loaded_digest
from tests.support.processes import python

_IMPORT = """
import sys
from pathlib import Path
import stages
stages.__path__.insert(0, sys.argv[1])
from stages import probe
from stages.support.system.loaded_code import loaded_digest
print(probe.VALUE, loaded_digest(Path(probe.__file__)))
"""


def imported(folder: Path) -> tuple[str, str]:
    """The value that a module `stages.probe` of a folder has in a process of its own, and what is noted of it."""
    done = python("-c", _IMPORT, str(folder), env={"PYTHONDONTWRITEBYTECODE": ""})
    value, digest = done.stdout.split()
    return value, digest


def digest_of(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_edit_of_the_same_size_and_time_is_what_runs(tmp_path: Path) -> None:
    module = tmp_path / "probe.py"
    module.write_text("VALUE = 'one'\n")
    assert imported(tmp_path) == ("one", digest_of(module))
    assert [path.suffix for path in (tmp_path / "__pycache__").iterdir()] == [".pyc"]
    info = module.stat()
    module.write_text("VALUE = 'two'\n")
    os.utime(module, ns=(info.st_atime_ns, info.st_mtime_ns))
    assert imported(tmp_path) == ("two", digest_of(module))


@pytest.mark.parametrize("damage", [b"", b"x" * 40, None])
def test_damaged_bytecode_is_made_again(tmp_path: Path, damage: bytes | None) -> None:
    module = tmp_path / "probe.py"
    module.write_text("VALUE = 'one'\n")
    imported(tmp_path)
    (cached,) = (tmp_path / "__pycache__").iterdir()
    good = cached.read_bytes()
    cached.write_bytes(good[: len(good) // 2] if damage is None else damage)
    assert imported(tmp_path) == ("one", digest_of(module))
    assert cached.read_bytes()[:16] == good[:16]


def test_modules_of_the_stages_are_noted() -> None:
    importlib.import_module("stages.compile")
    for name in ("stages/base.py", "stages/compile/stage.py"):
        assert loaded_digest(ROOT / name) == digest_of(ROOT / name)
    assert loaded_digest(ROOT / "stages/no_such_module.py") is None
