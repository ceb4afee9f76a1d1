"""Content of all export forms: networks, uniquely named sources, facts for templates."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from stages.backends.targets.spec import Target
from stages.delivery.export.network import Network
from stages.delivery.export.shared_arena import ARENA, SharedArena
from stages.delivery.export.sources import listed


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
        """Return the variables of the templates.

        With one network, those about it are at the top level too.
        """
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
