"""Objects of kernels are shared: an equal source is compiled once, any difference that matters compiles it again."""

from pathlib import Path

import pytest

from stages.backends.toolchain.objects import ObjectCache
from tests.support.counting import Folders

FLAGS = ("gcc", "-O2")


def write_sources(src: Path) -> Path:
    """A kernel with a header in another folder, as emit copies them; returns the kernel."""
    (src / "kernels/include").mkdir(parents=True)
    (src / "kernels/rvp").mkdir()
    (src / "model.h").write_text("#define SIZE 3\n")
    (src / "kernels/include/sums.h").write_text("#define SUM(a, b) ((a) + (b))\n")
    kernel = src / "kernels/rvp/gemm.c"
    kernel.write_text('#include <stdint.h>\n#include "../include/sums.h"\nint gemm(int a) { return SUM(a, 1); }\n')
    return kernel


def compiled(src: Path, kernel: Path, out: Path, *, flags: tuple[str, ...] = FLAGS, version: str = "12.2") -> int:
    """How often the compiler runs for the kernel: 0 or 1."""
    calls = []
    out.mkdir(exist_ok=True)
    objects = ObjectCache(
        Folders(src.parent / "store"), {"compiler": version}, (src / "kernels",), ((src, "src"), (out, "build"))
    )

    def compile_to(file: Path) -> None:
        calls.append(file)
        file.write_bytes(b"object")

    taken = objects.bring(kernel, [*flags, f"-I{src}"], (src,), out / "0_gemm.o", compile_to)
    if not taken:
        compile_to(out / "0_gemm.o")
    assert (out / "0_gemm.o").read_bytes() == b"object"
    return len(calls)


def test_equal_sources_in_other_folders_are_compiled_once(tmp_path: Path) -> None:
    for number, expected in ((0, 1), (1, 0)):
        src = tmp_path / f"src{number}"
        assert compiled(src, write_sources(src), tmp_path / "build") == expected


@pytest.mark.parametrize("change", ["source", "header", "flags", "compiler"])
def test_what_matters_is_in_the_key(tmp_path: Path, change: str) -> None:
    src = tmp_path / "src"
    kernel = write_sources(src)
    assert compiled(src, kernel, tmp_path / "build") == 1
    if change in ("source", "header"):
        path = kernel if change == "source" else src / "kernels/include/sums.h"
        path.write_text(path.read_text().replace("+", "-").replace("1", "2"))
    flags = ("gcc", "-O3") if change == "flags" else FLAGS
    version = "13.1" if change == "compiler" else "12.2"
    assert compiled(src, kernel, tmp_path / "build", flags=flags, version=version) == 1
    assert compiled(src, kernel, tmp_path / "build", flags=flags, version=version) == 0


@pytest.mark.parametrize(
    "line", ['#include "../../model.h"', '#include "model.h"', "#include NAME", '#include "gone.h"']
)
def test_a_source_that_depends_on_the_model_is_not_shared(tmp_path: Path, line: str) -> None:
    src = tmp_path / "src"
    kernel = write_sources(src)
    kernel.write_text(f"{line}\n{kernel.read_text()}")
    assert [compiled(src, kernel, tmp_path / "build") for _ in range(2)] == [1, 1]
