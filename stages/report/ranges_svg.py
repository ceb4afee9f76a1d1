"""The ranges of a quantized network's layers as a picture: what was seen, and what the integers can hold.

    conv          ├────────█████████┤          the line: from the least to the greatest number that the type can hold
    depthwise        ├─────██████████████      the bar: from the least to the greatest that the float network had

All layers are drawn to one scale, the square root of the magnitude, so that small ones show beside large ones.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from xml.sax.saxutils import escape as xml

from stages.messages import escape

_ROW, _LEFT, _WIDTH, _RIGHT, _TOP = 18, 260, 520, 150, 34
_NAME = 36  # letters


def ranges_svg(layers: Sequence[Mapping[str, Any]]) -> str:
    """The SVG of the layers of ptq.json."""
    most = max((abs(end) for layer in layers for end in _ends(layer)), default=0.0) or 1.0
    height = _TOP + _ROW * len(layers) + 10
    width = _LEFT + _WIDTH + _RIGHT
    body = [line for number, layer in enumerate(layers) for line in _layer(layer, _TOP + _ROW * number, most)]
    zero = _place(0.0, most)
    size = f'width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="11">',
            f'<rect width="{width}" height="{height}" fill="white"/>',
            f'<line x1="{zero}" y1="{_TOP - 8}" x2="{zero}" y2="{height - 6}" stroke="#bbbbbb"/>',
            f'<text x="{zero}" y="{_TOP - 14}" text-anchor="middle">0</text>',
            f'<text x="{_LEFT}" y="{_TOP - 14}">{-most:.3g}</text>',
            f'<text x="{_LEFT + _WIDTH}" y="{_TOP - 14}" text-anchor="end">{most:.3g}</text>',
            f'<text x="{width - 8}" y="{_TOP - 14}" text-anchor="end" fill="#777777">square-root scale</text>',
            *body,
            "</svg>\n",
        ]
    )


def _ends(layer: Mapping[str, Any]) -> Iterator[float]:
    yield from layer["seen"]
    if layer["low"] is not None:
        yield from (layer["low"], layer["high"])


def _place(value: float, most: float) -> float:
    share = math.copysign(math.sqrt(min(1.0, abs(value) / most)), value)
    return round(_LEFT + _WIDTH * (1 + share) / 2, 2)


def _layer(layer: Mapping[str, Any], top: int, most: float) -> Iterator[str]:
    name = escape.shortened(layer["name"].partition(";")[0], _NAME)
    middle = top + _ROW // 2
    yield f'<text x="{_LEFT - 8}" y="{middle + 4}" text-anchor="end">{xml(escape.name(name))}</text>'
    low, high = (_place(value, most) for value in layer["seen"])
    yield f'<rect x="{low}" y="{top + 4}" width="{max(1.0, round(high - low, 2))}" height="{_ROW - 8}" fill="#8db4d8"/>'
    if layer["low"] is not None:
        low, high = _place(layer["low"], most), _place(layer["high"], most)
        colour = "#c0392b" if layer["clipped"] else "#333333"
        ends = f"M{low} {top + 3}V{top + _ROW - 3}M{high} {top + 3}V{top + _ROW - 3}M{low} {middle}H{high}"
        yield f'<path d="{ends}" stroke="{colour}" fill="none"/>'
    told = f"{layer['dtype']}, {layer['snr']:.1f} dB"
    yield f'<text x="{_LEFT + _WIDTH + 8}" y="{middle + 4}">{xml(told)}</text>'
