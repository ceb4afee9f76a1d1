"""The kernels of a target are found by importing the folders it names, and light."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from stages.base import StageError
from stages.kernels.places import folder_names
from stages.kernels.registry import kernels

ROOT = Path(__file__).resolve().parents[3]


def test_names_begin_with_their_folder_and_their_files_exist() -> None:
    for name, kernel in kernels(folder_names()).items():
        assert name.split(".")[0] == kernel.folder.name
        assert kernel.ops
        for file in (*kernel.sources, *kernel.headers):
            assert (kernel.folder.path / file).is_file(), (name, file)


def test_folders_come_in_the_order_they_are_named() -> None:
    found = [name.split(".")[0] for name in kernels(["rvp", "generic"])]
    assert found == sorted(found, reverse=True)
    assert set(found) == {"rvp", "generic"}


def test_an_unknown_folder_is_an_error_with_the_list() -> None:
    with pytest.raises(StageError, match=r"no kernel folder 'rvv'\nKnown: .*generic"):
        kernels(["rvv"])


def test_shared_folders_are_no_kernel_folders() -> None:
    assert not {"tir", "include"} & set(folder_names())


def test_finding_kernels_imports_neither_tvm_nor_numpy() -> None:
    found = "from stages.kernels.registry import *; kernels(folder_names())"
    code = f"import sys; {found}; print(*{{'tvm', 'numpy'}} & {{*sys.modules}})"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
