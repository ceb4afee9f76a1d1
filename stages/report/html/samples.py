"""The first inference of the run: inputs (as an image if possible), largest outputs."""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from stages.support.lazy import np, npt

_MOST = 8  # output values that are shown


@dataclass(frozen=True)
class Shown:
    """An input or output.

    `image` is the data URI of a PNG or ''; `values` are (label, number, share 0 to 1).
    """

    name: str
    about: str
    image: str = ""
    size: tuple[int, int] = (0, 0)
    values: tuple[tuple[str, str, float], ...] = ()


def image_of(values: npt.NDArray[Any]) -> npt.NDArray[np.uint8] | None:
    """Return grey or RGB pixels of a tensor [1, H, W, 1 or 3], uint8[H, W, C]; else None.

    Values are scaled to the tensor's range.
    """
    if values.ndim != 4 or values.shape[0] != 1 or values.shape[3] not in (1, 3) or min(values.shape[1:3]) < 8:
        return None
    numbers = values[0].astype(np.float64)
    low, high = float(numbers.min()), float(numbers.max())
    if not np.isfinite((low, high)).all():
        return None
    scaled = (numbers - low) * (255 / (high - low)) if high > low else np.zeros_like(numbers)
    pixels: npt.NDArray[np.uint8] = np.rint(scaled).astype(np.uint8)
    return pixels


def png(pixels: npt.NDArray[np.uint8]) -> bytes:
    """Return a PNG file (ISO/IEC 15948) of uint8[H, W, 1 or 3], unfiltered."""
    height, width, channels = pixels.shape

    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    rows = b"".join(b"\0" + row.tobytes() for row in pixels)
    header = struct.pack(">IIBBBBB", width, height, 8, 0 if channels == 1 else 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows, 9)) + chunk(b"IEND", b"")


def shown_input(name: str, values: npt.NDArray[Any]) -> Shown:
    """Describe an input, with an image if it looks like one."""
    about = f"{values.dtype} {'x'.join(map(str, values.shape))}, {values.min()} to {values.max()}"
    pixels = image_of(values)
    if pixels is None:
        return Shown(name, about)
    uri = f"data:image/png;base64,{base64.b64encode(png(pixels)).decode('ascii')}"
    return Shown(name, about, uri, (pixels.shape[1], pixels.shape[0]))


def shown_output(name: str, values: npt.NDArray[Any], labels: Sequence[str] = ()) -> Shown:
    """Describe an output by its largest values, with their indices or class names."""
    about = f"{values.dtype} {'x'.join(map(str, values.shape))}"
    return Shown(name, about, values=tuple(_largest(values.reshape(-1), labels)))


def _largest(values: npt.NDArray[Any], labels: Sequence[str]) -> Iterator[tuple[str, str, float]]:
    numbers = np.nan_to_num(values.astype(np.float64))
    low, high = (float(numbers.min()), float(numbers.max())) if len(numbers) else (0.0, 0.0)
    for index in np.argsort(-numbers, kind="stable")[:_MOST]:
        share = (float(numbers[index]) - low) / (high - low) if high > low else 0.0
        label = labels[index] if len(labels) == len(numbers) else f"[{index}]"
        yield label, f"{values[index]:g}", share
