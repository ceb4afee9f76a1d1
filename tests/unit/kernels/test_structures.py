"""Constant structures have the fields of the C that reads them, in its order."""

from __future__ import annotations

import re
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest

from stages.kernels import structure
from stages.kernels.structure import Structure

KERNELS = Path(structure.__file__).parent
COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
STRUCTURE = re.compile(r"struct (\w+) \{([^}]*)\}")
FIELD = re.compile(r"(int32_t|struct \w+)\s+([^;]+);")
# What operators call a window's sides and what C calls them.
SHORT = {"kernel_height": "kernel_y", "kernel_width": "kernel_x"}


@cache
def declared() -> dict[str, tuple[tuple[str, str], ...]]:
    """(type, name) of the fields of each structure of a header that has nothing but int32 and structures."""
    found = {}
    for header in sorted(KERNELS.rglob("*.h")):
        for name, body in STRUCTURE.findall(COMMENT.sub("", header.read_text())):
            fields = [(kind, field.strip()) for kind, names in FIELD.findall(body) for field in names.split(",")]
            if not FIELD.sub("", body).strip():
                found[name] = tuple(fields)
    return found


def flat(name: str) -> tuple[str, ...]:
    """Names of a structure's int32 fields; those of structures in it are theirs."""
    parts = ((field,) if kind == "int32_t" else flat(kind.removeprefix("struct ")) for kind, field in declared()[name])
    return tuple(field for part in parts for field in part)


def structures() -> dict[str, Structure]:
    """Those of all modules of kernels, by module and name; what only lowers layers has none."""
    found = {}
    for path in sorted(KERNELS.rglob("*.py")):
        if "Structure(" in path.read_text() and path.name != "structure.py":
            module = ".".join(path.relative_to(KERNELS).with_suffix("").parts)
            for name, value in vars(import_module(f"stages.kernels.{module}")).items():
                if isinstance(value, Structure):
                    found[f"{module}.{name}"] = value
    return found


@pytest.mark.parametrize("found", [pytest.param(value, id=name) for name, value in structures().items()])
def test_a_structure_is_that_of_a_header(found: Structure) -> None:
    """Structures of assembly, which no header declares, are called `…_fields`."""
    if found.name.endswith("_fields"):
        assert found.name not in declared()
        return
    assert tuple(SHORT.get(name, name) for name in found.fields) == tuple(
        SHORT.get(name, name) for name in flat(found.name)
    )
