"""The arena as a picture: time across, address up, a box for each tensor and each scratch buffer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from stages.support.messages.wording import several

WIDTH, HEIGHT = 1000.0, 320.0
_LETTER = 6.2
_MOST_NAMED = 6


@dataclass(frozen=True)
class Block:
    """A buffer: where it is drawn, its tensors' names with where each begins, and whether it is alive when most is."""

    x: float
    y: float
    width: float
    height: float
    labels: tuple[tuple[float, str], ...]
    title: str
    kind: str
    at_peak: bool


@dataclass(frozen=True)
class Arena:
    """One region's picture. `peak` is the layer at which most bytes are alive, `alive` what these are."""

    region: str
    bytes: int
    blocks: tuple[Block, ...]
    peak: int
    peak_x: float
    peak_width: float
    alive: tuple[tuple[str, int], ...]
    layers: int


def arenas(report: Mapping[str, Any]) -> Iterator[Arena]:
    """A picture for each region that has buffers."""
    regions = dict.fromkeys(one["region"] for one in report["arena"])
    count = len(report["layers"])
    for region in regions:
        buffers = [one for one in report["arena"] if one["region"] == region and one["bytes"]]
        if buffers:
            yield _arena(region, buffers, max(count, 1))


def _arena(region: str, buffers: Sequence[Mapping[str, Any]], layers: int) -> Arena:
    top = max(one["offset"] + one["bytes"] for one in buffers)
    peak = max(range(layers), key=lambda at: sum(one["bytes"] for one in _alive(buffers, at)))
    step = WIDTH / layers
    alive = sorted(_alive(buffers, peak), key=lambda one: -one["bytes"])
    blocks = tuple(_block(one, step, top, peak) for one in buffers)
    named = tuple((short_name(_held(one, peak)), int(one["bytes"])) for one in alive)
    return Arena(region, top, blocks, peak, peak * step, step, named, layers)


def _alive(buffers: Sequence[Mapping[str, Any]], at: int) -> list[Mapping[str, Any]]:
    return [one for one in buffers if one["first"] <= at <= one["last"]]


def _block(one: Mapping[str, Any], step: float, top: int, peak: int) -> Block:
    width, height = (one["last"] - one["first"] + 1) * step, one["bytes"] / top * HEIGHT
    names = [short_name(name) for name in dict.fromkeys(held["name"] for held in _holds(one))]
    told = several(names, _MOST_NAMED)
    span = f"layers {one['first']} to {one['last']}" if one["last"] > one["first"] else f"layer {one['first']}"
    return Block(
        one["first"] * step,
        HEIGHT - (one["offset"] + one["bytes"]) / top * HEIGHT,
        width,
        height,
        tuple(_labels(one, step)) if height > 11 else (),
        f"{told}: {one['bytes']:,} bytes at {one['offset']:,}, {span}",
        one["kind"],
        one["first"] <= peak <= one["last"],
    )


def _holds(one: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """The tensors of a buffer, one after the other in its memory or parts of one; scratch is its own."""
    return one.get("holds") or [one]


def _held(one: Mapping[str, Any], at: int) -> str:
    """The name of what a buffer holds at a layer: of several that lie in each other's place the last."""
    whole = [held["name"] for held in _holds(one) if held["bytes"] == one["bytes"] and held["first"] <= at]
    return str(whole[-1] if whole else one["name"])


def _labels(one: Mapping[str, Any], step: float) -> Iterator[tuple[float, str]]:
    """Each name at the layer from which on the buffer holds it, cut where the next begins."""
    begins = {held["first"]: short_name(held["name"]) for held in _holds(one) if held["bytes"] == one["bytes"]}
    begins = begins or {one["first"]: short_name(one["name"])}
    starts = sorted(begins)
    for first, following in zip(starts, [*starts[1:], one["last"] + 1], strict=True):
        name, letters = begins[first], int(((following - first) * step - 4) / _LETTER)
        label = name if len(name) <= letters else f"{name[: letters - 1]}…" if letters > 3 else ""
        if label:
            yield first * step, label


def short_name(name: str) -> str:
    """Of fused operators' names the first, and of its path the last two parts; `scratch:24:panel` as it is."""
    return "/".join(name.partition(";")[0].rstrip("/").split("/")[-2:]) or name
