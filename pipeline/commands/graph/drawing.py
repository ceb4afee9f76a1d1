"""SVG of boxes in a column, with arrows from each box to later ones.

┌─────────────────────────┐
│ 0 conv          11,572  │
│ conv2d  rvp.direct_s8   │───┐       an arrow to the next box is a line,
└────────────┬────────────┘   │       an arrow over boxes has a lane at the right
┌────────────▼────────────┐   │
│ 1 depthwise      8,732  │   │
└────────────┬────────────┘   │
┌────────────▼────────────┐   │
│ 2 add            1,024  │◄──┘
└─────────────────────────┘
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape as xml
from xml.sax.saxutils import quoteattr

from stages.support.messages import escape

_TOP, _MARGIN, _HEIGHT, _GAP, _LANE = 64, 16, 44, 18, 14
_LEAST_LETTERS, _MOST_LETTERS = 30, 90
_LETTER = 7.3  # width of a letter of the monospaced font, 12 px high
_STYLE = """\
text { font: 12px ui-monospace, Menlo, Consolas, monospace; fill: #1f2328 }
.title { font-weight: bold } .heading { font-size: 14px; font-weight: bold } .quiet { fill: #59636e }
rect { fill: #f6f8fa; stroke: #8c959f; rx: 4px } .done rect { fill: #dafbe1 } .work rect { fill: #fff1c2 }
.end rect { fill: none; stroke-dasharray: 4 3 } path { fill: none; stroke: #57606a } marker path { fill: #57606a }
svg { background: #ffffff }
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3 } .quiet { fill: #9aa4ae } rect { fill: #1c2128; stroke: #6e7681 }
.done rect { fill: #12361f } .work rect { fill: #4a3a08 } .end rect { fill: none }
path { stroke: #9aa4ae } marker path { fill: #9aa4ae } svg { background: #0d1117 }
}"""


@dataclass(frozen=True)
class Box:
    """A box: title and figure in the first line, text in the second, a tooltip.

    kind: '', done, work or end, for its colors.
    """

    title: str
    figure: str = ""
    text: str = ""
    tooltip: str = ""
    kind: str = ""


@dataclass(frozen=True)
class Column:
    """Boxes from top to bottom; an arrow is a pair of box numbers, the smaller one first."""

    heading: str
    boxes: Sequence[Box]
    arrows: Sequence[tuple[int, int]]

    @property
    def letters(self) -> int:
        """Letters in the widest line of its boxes, within limits."""
        widest = max((max(len(box.title) + len(box.figure) + 3, len(box.text)) for box in self.boxes), default=0)
        return min(max(widest, _LEAST_LETTERS), _MOST_LETTERS)


def lanes_of(arrows: Sequence[tuple[int, int]]) -> dict[tuple[int, int], int]:
    """Return a lane for each arrow over boxes, short ones innermost.

    Arrows of one lane do not overlap.
    """
    lanes: list[list[tuple[int, int]]] = []
    chosen: dict[tuple[int, int], int] = {}
    for arrow in sorted({(a, b) for a, b in arrows if b - a > 1}, key=lambda pair: (pair[1] - pair[0], pair)):
        free = (n for n, lane in enumerate(lanes) if all(arrow[1] < a or b < arrow[0] for a, b in lane))
        number = next(free, len(lanes))
        lanes += [[]] * (number == len(lanes))
        lanes[number] = [*lanes[number], arrow]
        chosen[arrow] = number
    return chosen


def without_detours(arrows: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the arrows without those that a path of other arrows replaces."""
    after: dict[int, set[int]] = {}  # what each box reaches
    kept = []
    for first in sorted({first for first, _ in arrows}, reverse=True):
        after[first] = set()
        for last in sorted(last for start, last in arrows if start == first):
            if last not in after[first]:
                kept.append((first, last))
                after[first] |= {last} | after.get(last, set())
    return sorted(kept)


def svg(title: str, columns: Sequence[Column]) -> str:
    """Return the SVG of columns side by side."""
    body: list[str] = []
    left, height = _MARGIN, 0
    for column in columns:
        lanes = lanes_of(column.arrows)
        width = round(column.letters * _LETTER) + 20
        body += _column(column, left, width, lanes)
        left += width + _LANE * (max(lanes.values(), default=-1) + 2) + 2 * _MARGIN
        height = max(height, _TOP + len(column.boxes) * (_HEIGHT + _GAP))
    marker = '<marker id="arrow" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
    size = f'width="{left}" height="{height}" viewBox="0 0 {left} {height}"'
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" {size}>',
            f"<title>{_text(title)}</title>",
            f"<style>{_STYLE}</style>",
            f'<defs>{marker}<path d="M0 0L8 4L0 8z"/></marker></defs>',
            f'<text class="heading" x="{_MARGIN}" y="24">{_text(title)}</text>',
            *body,
            "</svg>\n",
        ]
    )


def _column(column: Column, left: int, width: int, lanes: dict[tuple[int, int], int]) -> Iterator[str]:
    yield f'<text class="quiet" x="{left}" y="{_TOP - 14}">{_text(column.heading)}</text>'
    for number, box in enumerate(column.boxes):
        yield from _box(box, left, _top(number), width, column.letters)
    middle, right = left + width // 2, left + width
    for first, last in dict.fromkeys(column.arrows):
        if last == first + 1:
            line = f"M{middle} {_top(first) + _HEIGHT}V{_top(last)}"
        else:
            lane = right + _LANE * (lanes[first, last] + 1)
            # Below the middle where an arrow leaves, above it where one arrives.
            line = f"M{right} {_top(first) + _HEIGHT - 12}H{lane}V{_top(last) + 12}H{right}"
        yield f'<path d="{line}" marker-end="url(#arrow)"/>'


def _top(number: int) -> int:
    return _TOP + number * (_HEIGHT + _GAP)


def _box(box: Box, left: int, top: int, width: int, letters: int) -> Iterator[str]:
    yield f"<g class={quoteattr(box.kind)}>" if box.kind else "<g>"
    if box.tooltip:
        yield f"<title>{_text(box.tooltip)}</title>"
    yield f'<rect x="{left}" y="{top}" width="{width}" height="{_HEIGHT}"/>'
    name = escape.shortened(box.title, max(8, letters - len(box.figure) - 3))
    yield f'<text class="title" x="{left + 10}" y="{top + 18}">{_text(name)}</text>'
    if box.figure:
        yield f'<text x="{left + width - 10}" y="{top + 18}" text-anchor="end">{_text(box.figure)}</text>'
    text = escape.shortened(box.text, letters)
    yield f'<text class="quiet" x="{left + 10}" y="{top + 35}">{_text(text)}</text>'
    yield "</g>"


def _text(text: str) -> str:
    return xml(escape.line(text))
