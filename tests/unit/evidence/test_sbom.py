"""The bill of materials fits CycloneDX's schema, with and without data and accuracy."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from stages.delivery.evidence.libraries import libraries
from stages.delivery.evidence.release import BuiltStage, Library, Release
from stages.delivery.evidence.sbom import sbom

PACKAGE = "pkg:deb/debian/libnewlib-arm-none-eabi@3.3.0-1.3%2Bdeb12u1?arch=all"
_PORT = {"dtype": "int8", "shape": [1, 10]}
PLAIN = Release(
    recipe="kws",
    target="cortex-m4",
    changes=(),
    version="0.2.0",
    stages=(BuiltStage("compile", "k", "c", {}, "d", {"compiler": "12.2.0", "C library": "newlib 3.3.0"}),),
    outputs={"firmware.elf": "1" * 64, "src/model.c": "2" * 64},
    inputs=(("recipe kws.yaml", "recipes/kws.yaml", "3" * 64),),
    programs={"compiler": "4" * 64},
    model={"name": "kws", "sha256": "5" * 64},
    network={"inputs": [_PORT], "outputs": [_PORT]},
    report={"verify": {"accuracy": None}},
)
FULL = replace(
    PLAIN,
    inputs=(*PLAIN.inputs, ("data inputs", "inputs/a.npy", "6" * 64)),
    report={"verify": {"accuracy": 0.9}},
    libraries=(
        Library("newlib", "3.3.0", {"license": {"name": "BSD"}}, {"libc.a": "7" * 64}, ("libc.a(memcpy.o)",), PACKAGE),
        Library("libgcc", "12.2.1", {"expression": "MIT"}, {}, (), ""),
    ),
)


@pytest.mark.parametrize("release", [PLAIN, FULL], ids=["plain", "full"])
def test_schema(release: Release) -> None:
    schema = pytest.importorskip("cyclonedx.schema", reason="needs the group evidence")
    from cyclonedx.validation.json import JsonStrictValidator

    document = sbom(release)
    assert JsonStrictValidator(schema.SchemaVersion.V1_6).validate_str(json.dumps(document)) is None
    references = {part["bom-ref"] for part in document["components"]} | {"firmware"}
    named = {ref for entry in document["dependencies"] for ref in (entry["ref"], *entry["dependsOn"])}
    assert named <= references


def test_libraries_are_those_of_the_linkers_map(tmp_path: Path) -> None:
    """Linked objects, an archive of which nothing is linked, a start-up object, a shared and an unknown library."""
    for name in ("libc.a", "libgcc.a", "crt0.o", "libm.so.6", "libvendor.a"):
        (tmp_path / name).write_text(name)
    map_text = f"""Archive member included to satisfy reference by file (symbol)

{tmp_path}/libc.a(libc_a-memcpy.o)
                              model/000_model.o (memcpy)
{tmp_path}/libvendor.a(fast.o) model/001_layers.o (fast)

LOAD model/000_model.o
LOAD {tmp_path}/crt0.o
LOAD {tmp_path}/libc.a
LOAD {tmp_path}/libgcc.a
LOAD {tmp_path}/libm.so.6
LOAD {tmp_path}/libvendor.a
 .text          0x00000000        0x4 {tmp_path}/libc.a(libc_a-memcpy.o)
"""
    c, gcc, vendor = libraries(map_text, {"compiler": "12.2.1", "C library": "picolibc 1.8"})
    assert (c.name, c.version, c.files.keys()) == ("picolibc", "1.8", {"libc.a", "crt0.o", "libm.so.6"})
    assert set(c.objects) == {"libc.a(libc_a-memcpy.o)", "crt0.o", "libm.so.6"}
    assert (gcc.name, gcc.version, list(gcc.files), gcc.objects) == ("libgcc", "12.2.1", ["libgcc.a"], ())
    assert gcc.license == {"expression": "GPL-3.0-or-later WITH GCC-exception-3.1"}
    assert (vendor.name, vendor.version, vendor.license) == ("libvendor", "", None)
    assert vendor.objects == ("libvendor.a(fast.o)",)
