"""Content of an export in all forms: networks, sources with unique names, and facts for the templates."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from stages.base import StageError
from stages.delivery.export.network import Network
from stages.delivery.export.sample import sample
from stages.delivery.export.shared_arena import ARENA, SharedArena, shared_arenas
from stages.delivery.export.sources import listed, sources_of

if TYPE_CHECKING:
    from stages.backends.targets.spec import Target
    from stages.delivery.export.form import Form


@dataclass(frozen=True)
class Run:
    """The artifacts of a recipe's run: of emit, simulate and, optionally, verify.

    title   name of the recipe
    caller  whether the caller provides the arenas
    """

    artifacts: Mapping[str, Path]
    title: str
    caller: bool = False


@dataclass(frozen=True)
class Content:
    """Networks for a target.

    name      name of the export, prefix of its kernels: with one network, the network's
    target    target of the sources
    networks  the networks
    sources   emitted sources by path, with names that no other export has
    version   Firmline's version
    overrides overrides of the recipes, `model=… set=…`, or ''
    shared    arenas that all networks use; empty if each has its own
    """

    name: str
    target: Target
    networks: tuple[Network, ...]
    sources: Mapping[str, bytes]
    version: str
    overrides: str = ""
    shared: tuple[SharedArena, ...] = ()

    @property
    def compiled(self) -> list[dict[str, Any]]:
        """Compiled files: {path, flags}, each once."""
        files = listed([network.model for network in self.networks])
        own = [{"path": ARENA, "flags": []}] if self.shared else []
        return [*own, *files["c"], *files["assembly"]]

    @property
    def flags(self) -> list[str]:
        """Compiler flags that select the core."""
        return [flag for flag in self.target.compiler.flags_to_compile if flag.startswith("-m")]

    @property
    def link_flags(self) -> list[str]:
        """Flags that select the core and its C library for the linker."""
        return [flag for flag in self.target.compiler.flags if flag.startswith("-m")]

    @property
    def is_plain(self) -> bool:
        """Whether the sources are plain C for any core."""
        headers = [data for path, data in self.sources.items() if PurePosixPath(path).name == "layers.h"]
        return not any(b"#error" in data for data in headers)

    @property
    def what(self) -> str:
        """The models' names for descriptions: `network a`, `networks a, b`."""
        names = ", ".join(network.model["name"] for network in self.networks)
        return f"network{'s' if len(self.networks) > 1 else ''} {names}"

    @property
    def blocks(self) -> list[dict[str, Any]]:
        """Arenas and weights that are variables of the sources, as in model.json."""
        shared = [arena.block for arena in self.shared]
        return [
            *shared,
            *(
                block
                for network in self.networks
                for block in network.model["blocks"]
                if not (network.caller and block["part"] == "arena")
            ),
        ]

    def facts(self) -> dict[str, Any]:
        """Return the variables of the templates. With one network, those about it are at the top level too."""
        networks = [network.facts() for network in self.networks]
        several = len(networks) > 1
        has_regions = any(len(network.model["blocks"]) > 2 for network in self.networks)
        verified = {network.verified for network in self.networks}
        return {
            **({} if several else networks[0]),
            "name": self.name,
            "macro": self.name.upper(),
            "title": ", ".join(network.title for network in self.networks),
            "networks": networks,
            "what": self.what,
            "shared": [arena.facts() for arena in self.shared],
            "overrides": self.overrides,
            "target": self.target.name,
            "core": self.target.core,
            "accelerator": self.target.accelerator is not None,
            "flags": [] if self.is_plain else self.flags,
            "files": self.compiled,
            "embedded": self._embedded(),
            "uses_math": any(b"<math.h>" in content for content in self.sources.values()),
            "floats": any(network["floats"] for network in networks),
            "blocks": [block for block in self.blocks if has_regions or block["region"]],
            "arena_bytes": sum(arena.bytes for arena in self.shared)
            or sum(network["arena_bytes"] for network in networks),
            "state_bytes": sum(network["state_bytes"] for network in networks),
            "weights_bytes": sum(network["weights_bytes"] for network in networks),
            "verified": verified.pop() if len(verified) == 1 else "",
            "version": self.version,
        }

    def _embedded(self) -> list[dict[str, Any]]:
        """Return assembly files with the binary files that they include: {path, bins}."""
        folders: dict[str, list[str]] = {}
        for path in sorted(self.sources):
            if path.endswith(".bin"):
                folders.setdefault(path.rpartition("/")[0], []).append(path)
        return [{"path": f"{folder}/weights.S".lstrip("/"), "bins": bins} for folder, bins in folders.items()]


def content_of(
    runs: Sequence[Run],
    target: Target,
    *,
    form: Form,
    version: str,
    name: str = "",
    overrides: str = "",
    share: bool = False,
) -> Content:
    """Read the content from the artifacts of one run, or of several for the same target.

    name   name of the export; '' for the only network's
    share  whether the networks use the same arenas. All of them are then emitted with `arena: caller`

    Raises StageError if the form does not support a network, or the sources cannot be renamed.
    """
    networks = tuple(_network(run) for run in runs)
    name = name or networks[0].name
    titles = ", ".join(network.title for network in networks)
    reason = "" if len(networks) == 1 or form.several else "it takes one network"
    reason = reason or _needs_linker_script(form, target)
    if reason:
        raise _refusal(titles, reason)
    shared = shared_arenas(name, networks) if share else ()
    folders = {network.name: run.artifacts["emit"] / "src" for network, run in zip(networks, runs, strict=True)}
    content = Content(
        name=name,
        target=target,
        networks=networks,
        sources=sources_of(name, networks, folders, target, shared),
        version=version,
        overrides=overrides,
        shared=shared,
    )
    reason = _needs_flags(form, content) or form.why_not(content)
    if reason:
        raise _refusal(titles, reason)
    return content


def _network(run: Run) -> Network:
    model = json.loads((run.artifacts["emit"] / "model.json").read_text())
    verify = run.artifacts.get("verify")
    verdict = json.loads((verify / "verify.json").read_text()) if verify else {}
    skipped = [name for key in ("without_reference", "overflowed", "tied") for name in verdict.get(key, ())]
    return Network(
        name=model["prefix"],
        title=run.title,
        model=model,
        sample=sample(run.artifacts["simulate"], model, skipped),
        verified=str(verdict.get("reference", "")),
        caller=run.caller,
    )


def _refusal(titles: str, reason: str) -> StageError:
    return StageError(f"{titles} cannot be exported in this form: {reason}", hint="`doit export` lists the forms")


def _needs_linker_script(form: Form, target: Target) -> str:
    if target.accelerator is None or form.places_memory:
        return ""
    engine = target.accelerator
    return (
        f"its layers run on {engine.kind}, whose memory {engine.memory} needs a linker script\n"
        f"as=cmake has one; for other forms, export for the core only: target={target.core}"
    )


def _needs_flags(form: Form, content: Content) -> str:
    flagged = next((file for file in content.compiled if file["flags"]), None)
    if flagged is None or form.gives_flags:
        return ""
    return (
        f"{flagged['path']} needs the flags {' '.join(flagged['flags'])}, and the form has no flags per file\n"
        "use cmake, zephyr or esp-idf, or target=host for plain C"
    )
