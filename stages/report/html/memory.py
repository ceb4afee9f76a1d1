"""Picture of the arena: time to the right, addresses up, a box for each buffer."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from stages.report.streaming import buffer_rows
from stages.support.messages.wording import several

WIDTH, HEIGHT = 1000.0, 320.0
_LETTER = 6.2
_MOST_NAMED = 6


@dataclass(frozen=True)
class Block:
    """Box of a buffer in the picture.

    `labels` are its tensors' names with their x position; `at_peak`: in use at the peak.
    """

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
    """Picture of one region.

    `peak` is the layer with the most bytes in use; `alive` lists them, name and bytes.
    """

    region: str
    bytes: int
    blocks: tuple[Block, ...]
    peak: int
    peak_x: float
    peak_width: float
    alive: tuple[tuple[str, int], ...]
    layers: int


def arenas(report: Mapping[str, Any]) -> Iterator[Arena]:
    """Yield a picture for each region that has buffers."""
    regions = dict.fromkeys(buffer["region"] for buffer in report["arena"])
    count = len(report["layers"])
    for region in regions:
        buffers = [buffer for buffer in report["arena"] if buffer["region"] == region and buffer["bytes"]]
        if buffers:
            yield _arena(region, buffers, max(count, 1))


def _arena(region: str, buffers: Sequence[Mapping[str, Any]], layers: int) -> Arena:
    top = max(buffer["offset"] + buffer["bytes"] for buffer in buffers)
    peak = peak_of(buffers, layers)
    step = WIDTH / layers
    in_use = sorted(alive(buffers, peak), key=lambda buffer: -buffer["bytes"])
    blocks = tuple(_block(buffer, step, top, peak) for buffer in buffers)
    named = tuple((short_name(tensor_at(buffer, peak)), int(buffer["bytes"])) for buffer in in_use)
    return Arena(region, top, blocks, peak, peak * step, step, named, layers)


def peak_of(buffers: Sequence[Mapping[str, Any]], layers: int) -> int:
    """Return the first of `layers` layers at which most bytes are alive."""
    return max(range(layers), key=lambda layer: bytes_in_use(alive(buffers, layer)))


def bytes_in_use(buffers: Sequence[Mapping[str, Any]]) -> int:
    """Return the bytes of buffers that are alive at once. Where two overlap, bytes count once."""
    total, covered = 0, dict.fromkeys((buffer["region"] for buffer in buffers), 0)
    for buffer in sorted(buffers, key=lambda buffer: buffer["offset"]):
        end = buffer["offset"] + buffer["bytes"]
        total += max(0, end - max(buffer["offset"], covered[buffer["region"]]))
        covered[buffer["region"]] = max(end, covered[buffer["region"]])
    return int(total)


def alive(buffers: Sequence[Mapping[str, Any]], layer: int) -> list[Mapping[str, Any]]:
    """Return the buffers that are in use at the layer's position."""
    return [buffer for buffer in buffers if buffer["first"] <= layer <= buffer["last"]]


def _block(buffer: Mapping[str, Any], step: float, top: int, peak: int) -> Block:
    width, height = (buffer["last"] - buffer["first"] + 1) * step, buffer["bytes"] / top * HEIGHT
    names = list(dict.fromkeys(map(_name, _tensors(buffer))))
    listed = several(names, _MOST_NAMED)
    first, last = buffer["first"], buffer["last"]
    span = f"layers {first} to {last}" if last > first else f"layer {first}"
    return Block(
        buffer["first"] * step,
        HEIGHT - (buffer["offset"] + buffer["bytes"]) / top * HEIGHT,
        width,
        height,
        tuple(_labels(buffer, step)) if height > 11 else (),
        f"{listed}: {buffer['bytes']:,} bytes at {buffer['offset']:,}, {span}",
        buffer["kind"],
        buffer["first"] <= peak <= buffer["last"],
    )


def _tensors(buffer: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """Return the tensors of a buffer in the order of time; for scratch the buffer itself."""
    return buffer.get("holds") or [buffer]


def tensor_at(buffer: Mapping[str, Any], layer: int) -> str:
    """Return the name of the last tensor that fills the buffer at a layer."""
    tensors = [tensor for tensor in _tensors(buffer) if tensor["bytes"] == buffer["bytes"]]
    names = [tensor["name"] for tensor in tensors if tensor["first"] <= layer]
    return str(names[-1] if names else buffer["name"])


def _labels(buffer: Mapping[str, Any], step: float) -> Iterator[tuple[float, str]]:
    """Yield the x position and the name of each tensor, shortened to end before the next."""
    tensors = [tensor for tensor in _tensors(buffer) if tensor["bytes"] == buffer["bytes"]] or [buffer]
    names = {tensor["first"]: _name(tensor) for tensor in tensors}
    starts = sorted(names)
    for first, following in zip(starts, [*starts[1:], buffer["last"] + 1], strict=True):
        name, letters = names[first], int(((following - first) * step - 4) / _LETTER)
        label = name if len(name) <= letters else f"{name[: letters - 1]}…" if letters > 3 else ""
        if label:
            yield first * step, label


def _name(tensor: Mapping[str, Any]) -> str:
    """Return a tensor's short name; of a rolling buffer with its rows: `b/Relu (3 of 48 rows)`."""
    rows = buffer_rows(tensor)
    return f"{short_name(tensor['name'])} ({rows})" if rows else short_name(tensor["name"])


def short_name(name: str) -> str:
    """Return the last two components of a name's path; of fused operators, the first name."""
    return "/".join(name.partition(";")[0].rstrip("/").split("/")[-2:]) or name
