"""Which changes of a kernel's code make its measurements stale."""

from pathlib import Path

import pytest

from stages.kernels import digest, registry
from stages.kernels.digest import kernel_digest

C = '#include "shared.h"\nint twice(int x) { return 2 * x; }\n'
PYTHON = '"""A kernel."""\nROWS = 4\n'


@pytest.fixture
def kernel(tmp_path: Path) -> Path:
    (tmp_path / "kernel.py").write_text(PYTHON)
    (tmp_path / "kernel.c").write_text(C)
    (tmp_path / "shared.h").write_text("#define WORD 4\n")
    return tmp_path


def digest_of(folder: Path) -> str:
    digest._digest_of.cache_clear()
    return digest._digest_of(folder / "kernel.py", folder, ("kernel.c",))


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [("kernel.c", "2 * x", "x + x"), ("shared.h", "4", "8"), ("kernel.py", "ROWS = 4", "ROWS = 5")],
)
def test_code_counts(kernel: Path, file: str, old: str, new: str) -> None:
    before = digest_of(kernel)
    text = (kernel / file).read_text()
    (kernel / file).write_text(text.replace(old, new))
    assert digest_of(kernel) != before


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("kernel.c", "/* Doubles.\n */\n" + C.replace("{ return", "{\n    return") + "// the end\n"),
        ("kernel.py", PYTHON.replace("A kernel", "Another").replace("= 4", "= 4  # rows")),
    ],
)
def test_comments_and_white_space_do_not(kernel: Path, file: str, text: str) -> None:
    before = digest_of(kernel)
    (kernel / file).write_text(text)
    assert digest_of(kernel) == before


def test_files_of_one_name_in_different_folders_all_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(digest, "_KERNELS", tmp_path)
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "rows.c").write_text("int rows = 4;\n")
    (tmp_path / "one" / "kernel.py").write_text(PYTHON)

    def both() -> str:
        digest._digest_of.cache_clear()
        return digest._digest_of(tmp_path / "one" / "kernel.py", tmp_path / "one", ("rows.c", "../two/rows.c"))

    before = both()
    for name in ("one", "two"):
        (tmp_path / name / "rows.c").write_text("int rows = 5;\n")
        assert both() != before
        (tmp_path / name / "rows.c").write_text("int rows = 4;\n")


def test_kernels_of_different_code_differ_and_modules_they_import_count() -> None:
    known = registry.kernels(["rvp", "generic"])
    assert kernel_digest(known["rvp.gemm_s8"]) != kernel_digest(known["generic.conv2d"])
    module = Path(digest.__file__).parent / "rvp" / "convolution.py"
    names = {path.name for path in digest._modules(module)}
    assert {"convolution.py", "convolution_tir.py", "packing.py"} <= names
    assert "kernel.py" not in names
