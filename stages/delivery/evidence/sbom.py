"""Bill of materials of a firmware: CycloneDX 1.6 with its part for machine learning."""

import uuid
from collections.abc import Mapping
from typing import Any

from stages.delivery.evidence.release import Library, Release

_NAMESPACE = uuid.UUID("0c0a3c9e-3d47-5d3c-9b7e-5b8f6a0c7f21")


def sbom(release: Release) -> dict[str, Any]:
    """Return the bill of materials. The same build gives the same document."""
    firmware = release.outputs["firmware.elf"]
    network, data = _network(release), _data(release)
    sources = {
        "type": "library",
        "bom-ref": "sources",
        "name": "emitted C and kernels",
        "version": release.version,
        "licenses": [{"license": {"id": "Apache-2.0"}}],
        "components": [
            {"type": "file", "bom-ref": name, "name": name, "hashes": _hashes(sha)}
            for name, sha in sorted(release.outputs.items())
            if name != "firmware.elf"
        ],
    }
    parts = [network, *data, sources, *map(_library, release.libraries)]
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(_NAMESPACE, firmware)}",
        "version": 1,
        "metadata": {
            "tools": {
                "components": [
                    {"type": "application", "name": "firmline", "version": release.version},
                    *(
                        {
                            "type": "application",
                            "name": name,
                            "version": version,
                            **({"hashes": _hashes(release.programs[name])} if name in release.programs else {}),
                        }
                        for name, version in sorted(release.tools.items())
                    ),
                ]
            },
            "component": {
                "type": "firmware",
                "bom-ref": "firmware",
                "name": f"{release.recipe} for {release.target}",
                "hashes": _hashes(firmware),
            },
        },
        "components": parts,
        "dependencies": [
            {"ref": "firmware", "dependsOn": [part["bom-ref"] for part in parts if _is_needed(part)]},
            {"ref": network["bom-ref"], "dependsOn": [part["bom-ref"] for part in data]},
        ],
    }


def _network(release: Release) -> dict[str, Any]:
    """Return the network: digest of its file, inputs and outputs, and its measured accuracy."""
    verify = release.report.get("verify") or {}
    metrics = [{"type": "accuracy", "value": str(verify["accuracy"])}] if verify.get("accuracy") is not None else []
    return {
        "type": "machine-learning-model",
        "bom-ref": "network",
        "name": release.model["name"],
        "hashes": _hashes(release.model["sha256"]),
        "modelCard": {
            "modelParameters": {
                "inputs": [{"format": _format(port)} for port in release.network["inputs"]],
                "outputs": [{"format": _format(port)} for port in release.network["outputs"]],
                **({"datasets": [{"ref": part["bom-ref"]} for part in _data(release)]} if _data(release) else {}),
            },
            **({"quantitativeAnalysis": {"performanceMetrics": metrics}} if metrics else {}),
        },
    }


def _library(library: Library) -> dict[str, Any]:
    """Return a library of the toolchain.

    Its scope is `excluded` if the firmware has no object of it.
    """
    return {
        "type": "library",
        "bom-ref": f"library {library.name}",
        "name": library.name,
        **({"version": library.version} if library.version else {}),
        "scope": "required" if library.objects else "excluded",
        **({"licenses": [library.license]} if library.license else {}),
        **({"purl": library.package} if library.package else {}),
        "components": [
            {"type": "file", "bom-ref": f"{library.name}/{name}", "name": name, "hashes": _hashes(sha)}
            for name, sha in library.files.items()
        ],
        "properties": [{"name": "firmline:linked objects", "value": ", ".join(library.objects) or "none"}],
    }


def _is_needed(part: Mapping[str, Any]) -> bool:
    """Return whether the firmware depends on a component."""
    return part["type"] != "data" and part.get("scope") != "excluded"


def _data(release: Release) -> list[dict[str, Any]]:
    """Return the files of inputs, labels and calibration."""
    return [
        {"type": "data", "bom-ref": f"data:{path}", "name": path, "hashes": _hashes(sha)}
        for name, path, sha in release.inputs
        if name.startswith("data ")
    ]


def _format(port: Mapping[str, Any]) -> str:
    return f"{port['dtype']}[{','.join(map(str, port['shape']))}]"


def _hashes(sha256: str) -> list[dict[str, str]]:
    return [{"alg": "SHA-256", "content": sha256}]
