"""Errors in a kernel's C are shown in the file that its author wrote."""

from pathlib import Path

import pytest

from stages.backends.targets.load import load_target
from stages.backends.targets.runtime import Runtime
from stages.backends.targets.spec import Target
from stages.backends.toolchain.compiler import Source, compile_sources
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
