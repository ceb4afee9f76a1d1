"""Facts about one build, for the bill of materials and the provenance."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class BuiltStage:
    """A stage of the build.

    key, content  of its artifact (docs/explanation/store.md)
    parameters    its options
    code          digest of its code
    tools         version by name
    """

    kind: str
    key: str
    content: str
    parameters: Mapping[str, Any]
    code: str
    tools: Mapping[str, str]


@dataclass(frozen=True)
class Library:
    """A library that the linker read.

    license  entry of CycloneDX's `licenses`; None if unknown
    files    SHA-256 of the archives, start-up objects and shared libraries that the linker read, by name
    objects  linked objects: `libc.a(memcpy.o)`, `crt1.o`, `libm.so.6`; empty if the firmware has none of it
    package  package URL of the Debian package; '' if unknown
    """

    name: str
    version: str
    license: Mapping[str, Any] | None
    files: Mapping[str, str]
    objects: tuple[str, ...]
    package: str


@dataclass(frozen=True)
class Release:
    """A build. Digests are SHA-256.

    changes   options of the command line, such as `set=…`
    version   of Firmline
    outputs   digests of firmware.elf and of the files below src/, by path in the build folder
    inputs    (name, path from the project, digest) of the recipe's documents, the model and data
    programs  digests of the tools that are programs, by the tool's name
    model     content of import.json
    network   content of emit's model.json
    report    content of report.json
    libraries of the toolchain
    """

    recipe: str
    target: str
    changes: tuple[str, ...]
    version: str
    stages: tuple[BuiltStage, ...]
    outputs: Mapping[str, str]
    inputs: tuple[tuple[str, str, str], ...]
    programs: Mapping[str, str]
    model: Mapping[str, Any]
    network: Mapping[str, Any]
    report: Mapping[str, Any]
    libraries: tuple[Library, ...] = ()

    @property
    def tools(self) -> dict[str, str]:
        """Versions of all tools, by name."""
        return {name: version for stage in self.stages for name, version in sorted(stage.tools.items())}
