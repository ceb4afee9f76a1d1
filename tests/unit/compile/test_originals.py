"""Errors in a kernel's C are shown in the file that its author wrote."""

from __future__ import annotations

from pathlib import Path

import pytest

from stages.backends.targets.load import load_target
from stages.backends.targets.runtime import Runtime
from stages.backends.targets.spec import Target
from stages.backends.toolchain.compiler import Source, compile_sources
from stages.backends.toolchain.originals import with_originals
from stages.base import StageError

BODY = "int f(void)\n{\n    return missing;\n}\n"


def with_folder(folder: Path) -> Target:
    target = load_target("host")
    return target.model_copy(
        update={"kernels": ("acme", *target.kernels), "places": {**target.places, "kernels/acme": folder}}
    )


def test_error_in_a_copy_is_shown_in_the_original(tmp_path: Path) -> None:
    """With its line: the copy has one more, the licence."""
    folder, copies = tmp_path / "net/plugins/kernels/acme", tmp_path / "store/src/kernels/acme"
    for where, first in ((folder, ""), (copies, "/* licence */\n")):
        where.mkdir(parents=True)
        (where / "f.c").write_text(first + BODY)
    with pytest.raises(StageError) as caught:
        compile_sources(with_folder(folder), Runtime(sources=()), [Source(copies / "f.c")], tmp_path / "obj")
    lines = str(caught.value).splitlines()
    assert lines[1].startswith("plugins/kernels/acme/f.c:3:12: error: 'missing' undeclared")
    assert "store" not in str(caught.value)


def test_folders_of_others_are_named_in_full_and_firmlines_by_room(tmp_path: Path) -> None:
    (tmp_path / "src/kernels/acme").mkdir(parents=True)
    (tmp_path / "src/kernels/generic").mkdir()
    (tmp_path / "acme_firmline").mkdir()
    for path in ("src/kernels/acme/f.c", "acme_firmline/f.c", "src/kernels/generic/add.c"):
        (tmp_path / path).write_text(BODY)
    target = with_folder(tmp_path / "acme_firmline")
    said = f"{tmp_path}/src/kernels/acme/f.c:3:1: x"
    assert with_originals(said, target) == f"{tmp_path}/acme_firmline/f.c:3:1: x"
    said = f"{tmp_path}/src/kernels/generic/add.c:3:1: x"
    assert with_originals(said, target).startswith("stages/backends/generic/kernels/generic/add.c:")
