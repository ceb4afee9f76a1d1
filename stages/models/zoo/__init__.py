"""The zoo: well-known topologies with seeded weights, by name, as TFLite files.

Layers are those of the published networks, in the order and with the operators that TensorFlow's converter gives them;
a test compares them with real files. The weights are random, so the networks classify nothing; they cost what the real
ones cost, and every layer computes something.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from stages import escape
from stages.base import StageError
from stages.models.zoo import inception, mobilenet, tiny
from stages.wording import did_you_mean

Topology = Callable[[str, int], bytes]


def _topologies() -> dict[str, Topology]:
    table: dict[str, Topology] = {
        "ds_cnn": tiny.ds_cnn,
        "mobilenet_v1_0.25_96_vww": mobilenet.vww,
        "resnet_8": tiny.resnet_8,
        "autoencoder": tiny.autoencoder,
        "inception_v3_299": inception.inception_v3,
        "inception_v4_299": inception.inception_v4,
    }
    for size in mobilenet.SIZES:
        for width in mobilenet.V1_WIDTHS:
            table[f"mobilenet_v1_{width}_{size}"] = partial(mobilenet.mobilenet_v1, width, size)
        for width in mobilenet.V2_WIDTHS:
            table[f"mobilenet_v2_{width}_{size}"] = partial(mobilenet.mobilenet_v2, width, size)
    return table


def names() -> list[str]:
    """All names, sorted."""
    return sorted(_topologies())


def check(name: str) -> None:
    """Raises StageError, with the nearest name, if there is no network of that name."""
    table = _topologies()
    if name not in table:
        families = sorted({"mobilenet_v1_<width>_<size>", "mobilenet_v2_<width>_<size>"} | _plain_names(table))
        raise StageError(
            f"unknown zoo model {escape.quoted(name)}{did_you_mean(name, table)}",
            hint=f"Known: {', '.join(families)}",
            at=("model", "zoo"),
        )


def build(name: str, dtype: str = "int8", seed: int = 0) -> bytes:
    """The TFLite file of a zoo network. StageError, with the nearest name, if there is none of that name."""
    check(name)
    return _topologies()[name](dtype, seed)


def _plain_names(table: dict[str, Topology]) -> set[str]:
    return {name for name in table if not name.startswith("mobilenet") or name.endswith("_vww")}
