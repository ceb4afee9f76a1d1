"""Kernel files and what they include, in a folder that needs no -I."""

from pathlib import Path

import pytest

from stages.base import StageError
from stages.emit.kernel_sources import copy_kernels


def write(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


def test_only_what_is_used_is_copied_with_what_it_includes(tmp_path: Path) -> None:
    write(
        tmp_path / "in",
        {
            "rvp/gemm.c": '#include <stdint.h>\n#include "gemm.h"\n',
            "rvp/gemm.h": '#  include "fixed.h"\nint gemm(void);\n',
            "rvp/other.c": "",
            "include/fixed.h": '#include "base.h"\n',
            "include/base.h": "",
        },
    )
    files = copy_kernels(["rvp/gemm.c"], tmp_path / "out", tmp_path / "in")
    assert files == ["include/base.h", "include/fixed.h", "rvp/gemm.c", "rvp/gemm.h"]
    licence = "/* SPDX-License-Identifier: Apache-2.0 */\n"
    assert (tmp_path / "out/rvp/gemm.h").read_text() == licence + '#  include "../include/fixed.h"\nint gemm(void);\n'
    assert (tmp_path / "out/rvp/gemm.c").read_text() == licence + '#include <stdint.h>\n#include "gemm.h"\n'
    assert (tmp_path / "out/include/fixed.h").read_text() == licence + '#include "base.h"\n'
    assert not (tmp_path / "out/rvp/other.c").exists()


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(StageError, match=r"rvp/none\.c is not in"):
        copy_kernels(["rvp/none.c"], tmp_path / "out", tmp_path)


def test_an_include_that_is_nowhere_is_named(tmp_path: Path) -> None:
    write(tmp_path, {"rvp/gemm.c": '#include "none.h"\n'})
    with pytest.raises(StageError, match=r"rvp/gemm\.c includes none\.h"):
        copy_kernels(["rvp/gemm.c"], tmp_path / "out", tmp_path)
