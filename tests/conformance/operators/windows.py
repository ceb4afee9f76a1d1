"""What convolutions, depthwise convolutions and poolings share: windows, and the sizes that come of them."""

from collections.abc import Iterator
from dataclasses import dataclass

from tests.conformance.draw import Draw

Pair = tuple[int, int]
_DRAWS = 100


@dataclass(frozen=True)
class Window:
    """A sliding window on an image of `size`; padding is (top, left, bottom, right)."""

    size: Pair
    kernel: Pair = (1, 1)
    stride: Pair = (1, 1)
    padding: tuple[int, int, int, int] = (0, 0, 0, 0)
    dilation: Pair = (1, 1)

    @property
    def out(self) -> Pair:
        """Rows and columns of the output; below 1 where the window does not fit."""
        spans = [
            self.size[i] + self.padding[i] + self.padding[i + 2] - (self.kernel[i] - 1) * self.dilation[i] - 1
            for i in range(2)
        ]
        return spans[0] // self.stride[0] + 1, spans[1] // self.stride[1] + 1

    def fields(self, *, dilated: bool = True) -> dict[str, object]:
        """The operator's fields."""
        found = {"kernel": self.kernel, "stride": self.stride, "padding": self.padding}
        return found | ({"dilation": self.dilation} if dilated else {})

    def __str__(self) -> str:
        parts = [f"{a}x{b}" for a, b in (self.kernel, self.stride, self.dilation, self.size)]
        return f"{parts[0]} stride {parts[1]} dilation {parts[2]} on {parts[3]} padding {self.padding}"


def any_window(draw: Draw, *, dilated: bool = True, largest: int = 4) -> Window:
    """Every window meets the image."""
    for _ in range(_DRAWS):
        kernel = (draw.integer(1, largest), draw.integer(1, largest))
        dilation = (draw.integer(1, 2), draw.integer(1, 2)) if dilated and draw.integer(0, 1) else (1, 1)
        padding = tuple(draw.integer(0, (kernel[i % 2] - 1) * dilation[i % 2]) for i in range(4))
        found = Window(
            (draw.integer(1, 11), draw.integer(1, 11)),
            kernel,
            (draw.integer(1, 3), draw.integer(1, 3)),
            padding,  # type: ignore[arg-type]
            dilation,
        )
        if min(found.out) >= 1 and fits(found):
            return found
    raise AssertionError("no window fits")


def fits(window: Window) -> bool:
    """Whether each window meets the image, and the padding is none that lies outside of all windows."""
    reach = [(window.kernel[i] - 1) * window.dilation[i] + 1 for i in range(2)]
    return all(window.padding[i] < reach[i % 2] for i in range(4)) and all(
        (window.out[i] - 1) * window.stride[i] - window.padding[i] < window.size[i] for i in range(2)
    )


def around(kernel: Pair, stride: Pair, out: Pair, draw: Draw) -> Window:
    """A window with an output of this size, and any padding that leaves something of the image."""
    spans = [(out[i] - 1) * stride[i] + kernel[i] for i in range(2)]
    padding = tuple(min(draw.integer(0, kernel[i % 2] - 1), (spans[i % 2] - 1) // 2) for i in range(4))
    size = (spans[0] - padding[0] - padding[2], spans[1] - padding[1] - padding[3])
    return Window(size, kernel, stride, padding)  # type: ignore[arg-type]


def kinds(most: int) -> Iterator[tuple[Pair, Pair]]:
    """Extents of windows up to `most` along one axis, with strides 1 and 2: what tables of functions are indexed by."""
    for long in range(1, most + 1):
        for short in (1, 2, 3):
            mixed = ((1, 2), (2, 1))[(long + short) % 2]
            for stride in ((1, 1), (2, 2), mixed):
                yield (long, short), stride
                yield (short, long), stride
