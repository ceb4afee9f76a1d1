"""Which changes of a kernel's code make its measurements stale, of every file and every kernel there is."""

import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from stages.backends.kernels import digest, places, registry
from stages.backends.kernels.digest import code_of
from stages.backends.kernels.kernel import Kernel
from tests.support.emitted import ROOT

C = '#include "shared.h"\nint twice(int x) { return 2 * x; }\n'
PYTHON = '"""A kernel."""\nROWS = 4\nclass Twice:\n    rows = ROWS\n'

FILES = ROOT / "stages" / "backends"


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


def included(kernel: Kernel, include: Sequence[Path]) -> set[Path]:
    """The kernel's C, assembly and headers, as the preprocessor finds them."""
    found: set[Path] = set()
    for name in (*kernel.sources, *kernel.headers):
        language = "assembler-with-cpp" if name.endswith(".S") else "c"
        folders = [f"-I{folder}" for folder in include]
        path = kernel.folder.path / name
        for size in ("32", "64") if "__riscv_xlen" in path.read_text() else ("32",):
            arguments = ["gcc", "-MM", "-MG", f"-D__riscv_xlen={size}", *folders, "-x", language, str(path)]
            printed = subprocess.run(arguments, capture_output=True, text=True, check=True).stdout
            found |= {Path(word).resolve() for word in printed.replace("\\\n", " ").split(":", 1)[1].split()}
    return {path for path in found if path.is_relative_to(FILES)}


@pytest.mark.parametrize("name", places.folder_names())
def test_what_a_kernel_is_compiled_with_counts_and_is_in_the_keys_of_a_target_that_has_its_folder(name: str) -> None:
    keyed = {path for pattern in places.code_patterns([name]) for path in ROOT.glob(pattern)}
    record = registry.folder(name)
    include = (*(places.include_path(record.path, name) for name in record.include), FILES / "kernels" / "include")
    assert all(folder.is_dir() for folder in include), include
    for kernel in registry.kernels([name]).values():
        found = digest._c_files(record.path, (*kernel.sources, *kernel.headers), include)
        assert {path for path in found if path.is_relative_to(FILES)} == included(kernel, include), kernel.name
        assert found <= keyed, (kernel.name, sorted(found - keyed))
