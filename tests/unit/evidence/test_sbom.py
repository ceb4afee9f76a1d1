"""The bill of materials fits CycloneDX's schema, with and without data and accuracy."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from stages.delivery.evidence.release import BuiltStage, Release
from stages.delivery.evidence.sbom import sbom

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
