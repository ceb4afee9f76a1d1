"""Provenance of a build, and its check against files.

The file is an in-toto statement with a SLSA provenance predicate.

https://github.com/in-toto/attestation/blob/main/spec/v1/statement.md, https://slsa.dev/spec/v1.0/provenance
"""

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from stages.delivery.evidence.release import Release

_STATEMENT, _PREDICATE = "https://in-toto.io/Statement/v1", "https://slsa.dev/provenance/v1"
_BUILD_TYPE = "urn:firmline:recipe:v1"


def statement(release: Release) -> dict[str, Any]:
    """Return the statement. Its subjects are the outputs.

    Its dependencies are recipe, model, data, tools and code.
    """
    model = {"name": f"model {release.model['name']}", "digest": {"sha256": release.model["sha256"]}}
    inputs = [{"name": name, "uri": path, "digest": {"sha256": sha}} for name, path, sha in release.inputs]
    tools = [
        {
            "name": f"tool {name}",
            **({"digest": {"sha256": release.programs[name]}} if name in release.programs else {}),
            "annotations": {"version": version},
        }
        for name, version in sorted(release.tools.items())
    ]
    code = [{"name": f"code of stage {stage.kind}", "digest": {"sha256": stage.code}} for stage in release.stages]
    artifacts = [
        {
            "name": f"artifact of stage {stage.kind}",
            "digest": {"sha256": stage.content},
            "annotations": {"key": stage.key},
        }
        for stage in release.stages
    ]
    return {
        "_type": _STATEMENT,
        "subject": [{"name": name, "digest": {"sha256": sha}} for name, sha in sorted(release.outputs.items())],
        "predicateType": _PREDICATE,
        "predicate": {
            "buildDefinition": {
                "buildType": _BUILD_TYPE,
                "externalParameters": {
                    "recipe": release.recipe,
                    "target": release.target,
                    "changes": list(release.changes),
                },
                "internalParameters": {"stages": {stage.kind: dict(stage.parameters) for stage in release.stages}},
                "resolvedDependencies": [model, *inputs, *tools, *code],
            },
            "runDetails": {
                "builder": {"id": f"urn:firmline:{release.version}", "version": {"firmline": release.version}},
                "metadata": {"invocationId": release.stages[-1].key},
                "byproducts": artifacts,
            },
        },
    }


def differences(statement: Mapping[str, Any], sbom: Mapping[str, Any], build: Path, project: Path) -> Iterator[str]:
    """Yield a sentence for each file that differs from the statement or bill of materials.

    build    the build folder, with firmware.elf and src/
    project  the folder that paths of inputs are relative to
    """
    subjects = {entry["name"]: entry["digest"]["sha256"] for entry in statement["subject"]}
    for name, expected in subjects.items():
        yield from _file(build / name, name, expected)
    present = {f"src/{path.relative_to(build / 'src').as_posix()}" for path in _files(build / "src")}
    yield from (f"{name}: not in the evidence" for name in sorted(present - subjects.keys()))
    dependencies = statement["predicate"]["buildDefinition"]["resolvedDependencies"]
    for entry in dependencies:
        if "uri" in entry:
            yield from _file(project / entry["uri"], f"{entry['name']} ({entry['uri']})", entry["digest"]["sha256"])
    firmware = sbom["metadata"]["component"]["hashes"][0]["content"]
    if firmware != subjects["firmware.elf"]:
        yield "firmware.elf: the bill of materials has another SHA-256 than the provenance"
    networks = [entry for entry in sbom["components"] if entry["type"] == "machine-learning-model"]
    models = {entry["digest"]["sha256"] for entry in dependencies if entry["name"].startswith("model ")}
    for network in networks:
        if network["hashes"][0]["content"] not in models:
            yield f"model {network['name']}: the provenance has another SHA-256 than the bill of materials"


def sha256(path: Path) -> str:
    """Return the SHA-256 of a file. Raises OSError."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def _file(path: Path, name: str, expected: str) -> Iterator[str]:
    """Yield a sentence if the file is missing or has another digest."""
    if not path.is_file():
        yield f"{name}: missing"
    elif (actual := sha256(path)) != expected:
        yield f"{name}: changed, SHA-256 {actual[:12]} instead of {expected[:12]}"
