"""Which changes of a kernel's code make its measurements stale, of every file and every kernel there is."""

from __future__ import annotations

import inspect
import shutil
import subprocess
from pathlib import Path

import pytest

from stages.kernels import digest, places, registry
from stages.kernels.digest import code_of
from stages.kernels.kernel import Kernel
from tests.support.emitted import ROOT

C = '#include "shared.h"\nint twice(int x) { return 2 * x; }\n'
PYTHON = '"""A kernel."""\nROWS = 4\nclass Twice:\n    rows = ROWS\n'

KERNELS = registry.kernels(places.folder_names())
FILES = ROOT / "stages" / "kernels"
# ---- of a kernel made up ---------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "twice.py").write_text(PYTHON)
    (tmp_path / "twice.c").write_text(C)
    (tmp_path / "shared.h").write_text("#define WORD 4\n")
    return tmp_path


def digest_of(folder: Path) -> str:
    return digest.digest(code_of(folder / "twice.py", "Twice", ("twice.c",), folder))


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [("twice.c", "2 * x", "x + x"), ("shared.h", "4", "8"), ("twice.py", "ROWS = 4", "ROWS = 5")],
)
def test_code_counts(folder: Path, file: str, old: str, new: str) -> None:
    before = digest_of(folder)
    text = (folder / file).read_text()
    (folder / file).write_text(text.replace(old, new))
    assert digest_of(folder) != before


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("twice.c", "/* Doubles.\n */\n" + C.replace("{ return", "{\n    return") + "// the end\n"),
        ("twice.py", PYTHON.replace("A kernel", "Another").replace("= 4", "= 4  # rows")),
    ],
)
def test_comments_and_white_space_do_not(folder: Path, file: str, text: str) -> None:
    before = digest_of(folder)
    (folder / file).write_text(text)
    assert digest_of(folder) == before


def test_files_of_one_name_in_different_folders_all_count(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "rows.c").write_text("int rows = 4;\n")
    (tmp_path / "one" / "twice.py").write_text(PYTHON)
    code = code_of(tmp_path / "one" / "twice.py", "Twice", ("rows.c", "../two/rows.c"), tmp_path)
    assert {"one/rows.c", "two/rows.c"} <= code.keys()


# ---- of every kernel there is ----------------------------------------------------------------------------------


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """All kernels, to be changed."""
    shutil.copytree(FILES, tmp_path / "kernels", ignore=shutil.ignore_patterns("__pycache__", "costs"))
    return tmp_path / "kernels"


def parts(kernel: Kernel, root: Path = FILES) -> dict[str, str]:
    module = root / Path(inspect.getfile(type(kernel))).relative_to(FILES)
    return code_of(module, type(kernel).__qualname__, (*kernel.sources, *kernel.headers), root)


def all_parts(root: Path = FILES) -> dict[str, dict[str, str]]:
    return {name: parts(kernel, root) for name, kernel in KERNELS.items()}


def stale(before: dict[str, dict[str, str]], root: Path) -> set[str]:
    return {name for name, code in all_parts(root).items() if code != before[name]}


def code_files(pattern: str) -> list[str]:
    return sorted(path.relative_to(FILES).as_posix() for path in FILES.rglob(pattern))


def included(kernel: Kernel) -> set[str]:
    """The kernel's C, assembly and headers, as the preprocessor finds them."""
    found: set[str] = set()
    for name in (*kernel.sources, *kernel.headers):
        language = "assembler-with-cpp" if name.endswith(".S") else "c"
        arguments = ["gcc", "-MM", "-MG", f"-I{FILES / 'include'}", "-x", language, str(kernel.folder.path / name)]
        printed = subprocess.run(arguments, capture_output=True, text=True, check=True).stdout
        paths = (Path(word).resolve() for word in printed.replace("\\\n", " ").split(":", 1)[1].split())
        found |= {path.relative_to(FILES).as_posix() for path in paths if path.is_relative_to(FILES)}
    return found


def is_of_a_driver(file: str) -> bool:
    """Whether a header is one that drivers of engines and of DMA include."""
    drivers = [path for room in ("accelerators", "offload") for path in (FILES.parent / room).rglob("*.c")]
    return any(f'#include "{Path(file).name}"' in driver.read_text() for driver in drivers)


def test_a_c_file_concerns_the_kernels_that_are_compiled_with_it(
    copy: Path, monkeypatch: pytest.MonkeyPatch, every: int
) -> None:
    monkeypatch.setattr(digest, "definitions_of", lambda *module: {})
    before = all_parts(copy)
    users = {name: included(kernel) for name, kernel in KERNELS.items()}
    for file in code_files("*.[chS]")[::every]:
        text = (copy / file).read_text()
        (copy / file).write_text(f"{text}\n.set changed, 1\n")
        expected = {name for name, files in users.items() if file in files}
        assert stale(before, copy) == expected, file
        assert expected or is_of_a_driver(file), f"{file} is in no kernel"
        (copy / file).write_text(text)


@pytest.mark.parametrize("name", places.folder_names())
def test_what_a_folder_includes_is_in_the_keys_of_a_target_that_has_it_alone(name: str) -> None:
    keyed = {path for pattern in places.code_patterns([name]) for path in ROOT.glob(pattern)}
    record = registry.folder(name)
    include = (*(record.path / each for each in record.include), FILES / "include")
    for kernel in registry.kernels([name]).values():
        found = digest._c_files(record.path, (*kernel.sources, *kernel.headers), include)
        assert found <= keyed, (kernel.name, sorted(found - keyed))
