"""The kernels of a target are found by importing the folders it names, and light."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from stages.backends.kernels.registry import kernels
from stages.base import StageError

ROOT = Path(__file__).resolve().parents[3]


def test_an_unknown_folder_is_an_error_with_the_list() -> None:
    with pytest.raises(StageError, match=r"no kernel folder 'simd'\nKnown: .*generic"):
        kernels(["simd"])


def test_finding_kernels_imports_neither_tvm_nor_numpy() -> None:
    found = "from stages.backends.kernels.registry import *; kernels(folder_names())"
    code = f"import sys; {found}; print(*{{'tvm', 'numpy'}} & {{*sys.modules}})"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
