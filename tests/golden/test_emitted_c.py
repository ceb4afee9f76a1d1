"""The emitted C of a small network, as people will read it."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.mini_emit import PLAIN, emit_mini


@pytest.mark.parametrize(
    "file", ["model.h", "model.c", "layers.h", "layers.c", "weights.S", "model_trace.c", "CMakeLists.txt"]
)
def test_emitted_files(tmp_path: Path, golden: Callable[[str, str], None], file: str) -> None:
    emit_mini(tmp_path)
    golden(f"emitted/{file}.golden", (tmp_path / "emitted/src" / file).read_text())


def test_emitted_loop_nest_without_micro_kernel(tmp_path: Path, golden: Callable[[str, str], None]) -> None:
    emit_mini(tmp_path, kernels=PLAIN)
    golden("emitted/layers_plain.c.golden", (tmp_path / "emitted/src/layers.c").read_text())
