"""Kernel files and what they include, in a folder that needs no -I."""

from pathlib import Path

import pytest

from stages.backends.kernels.folder import KernelFolder
from stages.base import StageError
from stages.emit.kernel_sources import copy_kernels


def write(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


def declared(root: Path) -> dict[str, KernelFolder]:
    return {"rvp": KernelFolder(str(root / "rvp" / "__init__.py"), kernels=(), include=("more",))}


def test_only_what_is_used_is_copied_with_what_it_includes(tmp_path: Path) -> None:
    write(
        tmp_path / "in",
        {
            "rvp/gemm.c": '#include <stdint.h>\n#include "gemm.h"\n',
            "rvp/gemm.h": '#  include "fixed.h"\nint gemm(void);\n',
            "rvp/other.c": "",
            "rvp/more/fixed.h": '#include "base.h"\n#include "fixed_point.h"\n',
            "rvp/more/base.h": "",
        },
    )
    files = copy_kernels(["rvp/gemm.c"], tmp_path / "out", declared(tmp_path / "in"))
    assert files == ["include/fixed_point.h", "rvp/gemm.c", "rvp/gemm.h", "rvp/more/base.h", "rvp/more/fixed.h"]
    licence = "/* SPDX-License-Identifier: Apache-2.0 */\n"
    assert (tmp_path / "out/rvp/gemm.h").read_text() == licence + '#  include "more/fixed.h"\nint gemm(void);\n'
    assert (tmp_path / "out/rvp/gemm.c").read_text() == licence + '#include <stdint.h>\n#include "gemm.h"\n'
    assert (tmp_path / "out/rvp/more/fixed.h").read_text() == (
        licence + '#include "base.h"\n#include "../../include/fixed_point.h"\n'
    )
    assert not (tmp_path / "out/rvp/other.c").exists()


@pytest.mark.parametrize(("gone", "told"), [("rvp/gemm.c", "`sources`"), ("rvp/lost.h", "`include` of its FOLDER")])
def test_a_file_that_a_plug_in_lacks_is_for_its_author(tmp_path: Path, gone: str, told: str) -> None:
    """No command about Firmline's own files mends it."""
    write(tmp_path / "rvp", {} if gone.endswith(".c") else {"gemm.c": '#include "lost.h"\n'})
    with pytest.raises(StageError) as caught:
        copy_kernels(["rvp/gemm.c"], tmp_path / "out", declared(tmp_path))
    assert told in caught.value.hint and "git" not in caught.value.hint
    assert caught.value.hint.endswith(f"in {tmp_path.name}/rvp")
