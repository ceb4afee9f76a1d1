"""Picture of the layers' value ranges: measured, and representable by the integers.

    conv                     int8, 31.2 dB
         ├────────█████████┤                   the line: from the smallest to the largest number of the type
    depthwise                int8, 28.0 dB
            ├─────██████████████               the bar: from the smallest to the largest number in the float network

All layers have one scale, the square root of the magnitude, so that small ranges remain visible. Names are above the
bars, to fit narrow pages.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from xml.sax.saxutils import escape as xml

from stages.support.messages import escape

_ROW, _LEFT, _WIDTH, _TOP = 32, 10, 500, 42
_BAR, _MIDDLE = 10, 22  # height of a bar, and the position of its middle in a row
_NAME = 30  # letters

# Inside a page, the picture uses the page's colours (CSS variables). As a file it uses the fallbacks, light or dark.
# Every rule begins with `.ranges`, because it would apply to the whole page otherwise.
_STYLE = """\
.ranges { max-width: 100%; height: auto; font: 13px system-ui, sans-serif }
.ranges text { fill: var(--ink, #1f2328) } .ranges .quiet { fill: var(--quiet, #59636e) }
.ranges .zero { stroke: var(--line, #d1d9e0) } .ranges .seen { fill: var(--bar, #9ec5e8) }
.ranges .held { stroke: var(--ink, #1f2328); fill: none } .ranges .clipped { stroke: var(--bad, #c62828) }
@media (prefers-color-scheme: dark) {
.ranges text { fill: var(--ink, #e6edf3) } .ranges .quiet { fill: var(--quiet, #9aa4ae) }
.ranges .zero { stroke: var(--line, #343b43) } .ranges .seen { fill: var(--bar, #1f4e79) }
.ranges .held { stroke: var(--ink, #e6edf3) } .ranges .clipped { stroke: var(--bad, #ff7b72) }
}"""


def ranges_svg(layers: Sequence[Mapping[str, Any]]) -> str:
    """Return the SVG for the layers of ptq.json."""
    most = max((abs(end) for layer in layers for end in _ends(layer)), default=0.0) or 1.0
    height = _TOP + _ROW * len(layers) + 10
    width, end = _LEFT + _WIDTH + _LEFT, _LEFT + _WIDTH
    body = [line for number, layer in enumerate(layers) for line in _layer(layer, _TOP + _ROW * number, most)]
    zero = _place(0.0, most)
    size = f'width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" class="ranges" {size}>',
            f"<style>{_STYLE}</style>",
            f'<line class="zero" x1="{zero}" y1="{_TOP - 6}" x2="{zero}" y2="{height - 6}"/>',
            f'<text class="quiet" x="{end}" y="14" text-anchor="end">square-root scale</text>',
            f'<text x="{zero}" y="{_TOP - 10}" text-anchor="middle">0</text>',
            f'<text x="{_LEFT}" y="{_TOP - 10}">{-most:.3g}</text>',
            f'<text x="{end}" y="{_TOP - 10}" text-anchor="end">{most:.3g}</text>',
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
    middle = top + _MIDDLE
    yield f'<text x="{_LEFT}" y="{top + 12}">{xml(escape.name(name))}</text>'
    label = f"{layer['dtype']}, {layer['snr']:.1f} dB"
    yield f'<text x="{_LEFT + _WIDTH}" y="{top + 12}" text-anchor="end">{xml(label)}</text>'
    low, high = (_place(value, most) for value in layer["seen"])
    width = max(1.0, round(high - low, 2))
    yield f'<rect class="seen" x="{low}" y="{middle - _BAR // 2}" width="{width}" height="{_BAR}"/>'
    if layer["low"] is not None:
        low, high = _place(layer["low"], most), _place(layer["high"], most)
        kind = "held clipped" if layer["clipped"] else "held"
        top, bottom = middle - _BAR // 2 - 1, middle + _BAR // 2 + 1
        yield f'<path class="{kind}" d="M{low} {top}V{bottom}M{high} {top}V{bottom}M{low} {middle}H{high}"/>'
