"""What of a module counts for a class that uses some of it."""

from pathlib import Path

import pytest

from stages.backends.kernels.definitions import definitions_of

KERNEL = """
from stages.backends import shared
from stages.backends.base import Base, SIZE as size
from stages.backends.family import helper

TABLE = (size, 2)

class Kernel(Base):
    rows: Rows = Rows(4)

    def lower(self, view):
        from stages.backends.tir.block import place

        alone = [TABLE[0] for TABLE in view]
        return place(shared.used(alone), helper(TABLE))

class Rows:
    pass

class Other(Base):
    def lower(self, view):
        return shared.unused(view)
"""
BASE = """
from stages.backends.kernels.kernel import Kernel

class Base(Kernel):
    pass

SIZE = 1
MORE = 2
"""
SHARED = """
from .inner import deep

WORD = 4

def used(x):
    return deep(x) * WORD

def unused(x):
    from numpy import max as deep

    return deep(x)
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    files = {
        "one/kernel.py": KERNEL,
        "shared.py": SHARED,
        "inner.py": "def deep(x):\n    return x\n\ndef other(x):\n    return x\n",
        "base.py": BASE,
        "kernels/kernel.py": "class Kernel:\n    pass\n",
        "family/__init__.py": "from stages.backends.family.names import helper\n",
        "family/names.py": "def helper(x):\n    return x\n\ndef spare(x):\n    return x\n",
        "tir/block.py": "from tvm import ir\n\ndef place(*x):\n    return x\n\nregistered = place(1)\nprint(2)\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def found(root: Path, name: str = "Kernel") -> dict[str, str]:
    return definitions_of(root / "one" / "kernel.py", name, root)


def test_what_a_class_uses_counts_through_modules_packages_and_local_imports(root: Path) -> None:
    assert set(found(root)) == {
        *("one/kernel.py:Kernel", "one/kernel.py:TABLE", "one/kernel.py:Rows"),
        *("shared.py:used", "shared.py:WORD", "inner.py:deep"),
        *("base.py:Base", "base.py:SIZE"),
        "family/names.py:helper",
        *("tir/block.py:place", "tir/block.py:"),  # with what the module does when it is imported
    }
    assert set(found(root, "Other")) == {"one/kernel.py:Other", "base.py:Base", "shared.py:unused"}


@pytest.mark.parametrize(
    ("text", "counts"),
    [
        ("from stages.backends.shared import *\nclass Kernel:\n    x = used(1)\n", {"used", "unused", "WORD"}),
        ("from stages.backends import shared\nclass Kernel:\n    x = dir(shared)\n", {"used", "unused", "WORD"}),
        ("import stages.backends.shared as s\nclass Kernel:\n    x = s.unused(1)\n", {"unused"}),
        ("import stages.backends.shared\nclass Kernel:\n    x = stages.backends.shared.used(1)\n", {"used", "unused"}),
        ("class Kernel:\n    def f(self):\n        import stages.backends.shared\n", {"used", "unused"}),
        ("from .. import shared\nclass Kernel:\n    x = shared.unused(1)\n", {"unused"}),
        ("from ..shared import WORD\nclass Kernel:\n    x = WORD\n", {"WORD"}),
        ("from numpy import shared, used\nclass Kernel:\n    x = shared.unused(used)\n", set()),
        ("from stages.backends.shared import used\nclass Kernel:\n    def f(self, x: used, used: int): ...\n", set()),
        ("from stages.backends.shared import used\nif used:\n    def g(): ...\nclass Kernel:\n    x = g\n", {"used"}),
    ],
)
def test_every_way_to_import(root: Path, text: str, counts: set[str]) -> None:
    (root / "one" / "kernel.py").write_text(text)
    of_shared = {name.removeprefix("shared.py:") for name in found(root) if name.startswith("shared.py:")}
    assert counts <= of_shared
    assert counts or not of_shared
    if "unused" not in counts:
        assert "unused" not in of_shared
