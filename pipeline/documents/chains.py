"""Replace the network in a recipe's `model: {chain: [...]}`."""

from collections.abc import Mapping
from typing import Any

NETWORK_SOURCES = ("file", "url", "zoo", "op")
_PART_OPTIONS = ("name", "inputs", "convert")  # of the part, whichever network it has


def networks_of(model: Any) -> list[int]:
    """Return the numbers of a chain's parts that are networks; [] for another model."""
    parts = model.get("chain") if isinstance(model, Mapping) else None
    numbered = enumerate(parts if isinstance(parts, list) else ())
    return [at for at, part in numbered if isinstance(part, Mapping) and part.keys() & set(NETWORK_SOURCES)]


def with_network(model: Mapping[str, Any], network: Mapping[str, Any]) -> dict[str, Any]:
    """Return a chain of one network with another network.

    Returns `network` itself if the chain has no network or several.
    """
    places = networks_of(model)
    if len(places) != 1:
        return dict(network)
    (at,) = places
    parts = list(model["chain"])
    parts[at] = {**{key: value for key, value in parts[at].items() if key in _PART_OPTIONS}, **network}
    return {**model, "chain": parts}
