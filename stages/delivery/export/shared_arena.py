"""Arenas that networks of an export share: memory of the largest size, by region."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from stages.base import StageError
from stages.delivery.export.network import Network

#: The file with the shared arenas.
ARENA = "arena.c"


@dataclass(frozen=True)
class SharedArena:
    """An arena of several networks.

    symbol   name of the variable
    region   memory region; '' if the target has only one
    bytes    the largest of the networks' sizes
    users    names of the networks that use it
    """

    symbol: str
    region: str
    bytes: int
    users: tuple[str, ...]

    @property
    def block(self) -> dict[str, Any]:
        """The arena as a block of model.json."""
        macro = f"{self.symbol.upper()}_SECTION"
        return {
            "part": "arena",
            "region": self.region,
            "bytes": self.bytes,
            "symbol": self.symbol,
            "section_macro": macro,
            "loaded_from": "",
        }

    def facts(self) -> dict[str, Any]:
        """Return the variables of the templates."""
        return {
            "symbol": self.symbol,
            "macro": self.symbol.upper(),
            "region": self.region,
            "bytes": self.bytes,
            "alignments": [f"{user.upper()}_ARENA_ALIGNMENT" for user in self.users],
        }


def shared_arenas(name: str, networks: Sequence[Network]) -> tuple[SharedArena, ...]:
    """Return an arena for each region that a network uses. `name` is the export's."""
    for network in networks:
        if "input_rows" in network.model:
            raise StageError(
                f"{network.name} takes its input by rows (`emit: {{input: rows}}`): its arena is in use "
                "between two rows, so no other network can share it"
            )
    regions = list(dict.fromkeys(block["region"] for network in networks for block in network.arenas))
    return tuple(
        SharedArena(
            symbol=f"{name}_arena" if len(regions) == 1 else f"{name}_arena_{region or 'any'}",
            region=region,
            bytes=max(1, *(max(block["bytes"] for block in _in(network, region)) for network in users)),
            users=tuple(network.name for network in users),
        )
        for region in regions
        if (users := [network for network in networks if _in(network, region)])
    )


def init_arguments(network: Network, shared: Sequence[SharedArena]) -> str:
    """Return the arguments of the network's init: arenas, state, blob of weights."""
    of_region = {arena.region: arena.symbol for arena in shared}
    symbols = [of_region[block["region"]] for block in network.arenas]
    symbols += [network.model["state"]["symbol"]] if network.is_stateful else []
    return ", ".join([*(f"{symbol}, sizeof {symbol}" for symbol in symbols), *([network.blob] if network.blob else [])])


def _in(network: Network, region: str) -> list[dict[str, Any]]:
    return [block for block in network.arenas if block["region"] == region]
