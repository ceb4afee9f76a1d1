"""Cases of data movement and CONCATENATION, on 8-bit and on 32-bit elements."""

from collections.abc import Iterator
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from stages.ir.graph import Concatenation, LayerView, Move
from tests.conformance.case import Case, cases, drawn_inputs
from tests.conformance.draw import Draw, bounds, image, view

OPS = ("move", "concatenation")
SLICES = ("slice", "strided_slice", "split")
BLOCKS = ("depth_to_space", "space_to_depth")
KINDS = (*SLICES, "pad", "transpose", "layout", "resize_nearest_neighbor", "reshape", *BLOCKS)


def concatenation(draw: Draw) -> LayerView:
    size, dtype = list(draw.shape()), draw.choose(draw.dtype, draw.dtype, "int32")
    axis = draw.integer(0, len(size) - 1)
    layout = draw.layout() if len(size) == 4 else ""
    inputs = []
    for number in range(draw.integer(1, 4)):
        size[axis] = draw.integer(1, 20)
        inputs.append(image(f"x{number}", tuple(size), dtype, layout))
    size[axis] = sum(x.shape[axis] for x in inputs)
    return view(Concatenation(axis=draw.choose(axis, axis - len(size))), inputs, image("y", tuple(size), dtype, layout))


def move(draw: Draw, kind: str = "") -> LayerView:
    """Every kind; a third of them on int32."""
    kind = kind or draw.choose(*KINDS)
    dtype = draw.choose(draw.dtype, draw.dtype, "int32")
    images = kind in ("layout", "resize_nearest_neighbor", *BLOCKS)
    size = tuple(draw.integer(1, 7) for _ in range(4)) if images else draw.shape()
    if draw.integer(0, 2) == 0:
        size = (*size[:-1], draw.integer(16, 40))
    if kind in BLOCKS:
        rows, columns = block = [draw.integer(1, 3), draw.integer(1, 3)]
        deep = (*size[:3], size[3] * rows * columns)
        wide = (size[0], size[1] * rows, size[2] * columns, size[3])
        (size, out), params = (deep, wide) if kind == "depth_to_space" else (wide, deep), {"block": block}
    else:
        out, params = _moved(draw, kind, size, dtype)
    layouts = [draw.layout() if len(s) == 4 else "" for s in (size, out)]
    if kind == "reshape":
        layouts[draw.integer(0, 1)] = ""
    x, y = image("x", size, dtype, layouts[0]), image("y", out, dtype, layouts[1])
    return view(Move(kind=kind, params=params), [x], y)


def _moved(draw: Draw, kind: str, size: tuple[int, ...], dtype: str) -> tuple[tuple[int, ...], dict[str, Any]]:
    """The output's shape and the parameters."""
    if kind == "pad":
        before, after = ([draw.integer(0, 3) for _ in size] for _ in range(2))
        low, high = bounds(dtype)
        params = {"before": before, "after": after, "value": draw.choose(low, high, draw.integer(0, 127))}
        return tuple(a + n + b for a, n, b in zip(before, size, after, strict=True)), params
    if kind == "transpose":
        permutation = [int(axis) for axis in draw.rng.permutation(len(size))]
        return tuple(size[axis] for axis in permutation), {"permutation": permutation}
    if kind in SLICES:
        begin, stride, count = [], [], []
        for n in size:
            step = draw.choose(1, 2, -1, -2) if kind == "strided_slice" else 1
            begin.append(draw.integer(0, n - 1))
            count.append(draw.integer(1, (begin[-1] if step < 0 else n - 1 - begin[-1]) // abs(step) + 1))
            stride.append(step)
        dropped = kind == "strided_slice" and draw.integer(0, 1)
        out = tuple(n for n in count if n > 1 or not dropped)
        return out, {"begin": begin, "stride": stride, "size": count}
    if kind == "resize_nearest_neighbor":
        out = (size[0], draw.integer(1, 9), draw.integer(1, 9), size[3])
        tables = [[draw.integer(0, size[i] - 1) for _ in range(out[i])] for i in (1, 2)]
        return out, {"rows": tables[0], "columns": tables[1]}
    if kind == "reshape":
        return (int(np.prod(size)),), {}
    return size, {}


def drawn(draw: Draw) -> LayerView:
    """Any movement."""
    return concatenation(draw) if draw.integer(0, 2) == 0 else move(draw)


def mandatory() -> Iterator[Case]:
    common: dict[str, Any] = {"types": ("int8", "uint8"), "inputs": lambda draw, layer: drawn_inputs(draw, layer)[:2]}
    for kind in KINDS:
        yield from cases(14, partial(move, kind=kind), kind, name=kind, **common)
    yield from cases(30, concatenation, "concatenation", **common)
    for part in (_backwards, _words, _transposes, _long_runs, _turns, _blocks, _pixels):
        yield from part()


def _backwards() -> Iterator[Case]:
    """Rows of which the last comes first, whole and in part."""
    for number, (step, length) in enumerate(product((-1, -2), (1, 3, 20))):
        draw, shape, out = Draw(number), (2, 9, 24), (2, 4, length)
        params = {"begin": [0, 7, 2], "stride": [1, step, 1], "size": list(out)}
        dtype = draw.choose("int8", "int16", "int32")
        layer = view(Move(kind="strided_slice", params=params), [image("x", shape, dtype)], image("y", out, dtype))
        yield Case(f"{length} of each row, step {step}", ("strided_slice",), layer, drawn_inputs(draw, layer)[:1])


def _long_runs() -> Iterator[Case]:
    """Runs of several words that begin at each byte of a word, in both tensors: slices, and pads around them."""
    for length in (25, 31, 33, 40, 58, 64, 67, 101):
        for start in range(9):
            draw = Draw(length + 100 * start, ("int8", "uint8")[start % 2])
            shape, out = (3, length + start + start % 3), (3, length)
            sliced = Move(kind="slice", params={"begin": [0, start], "stride": [1, 1], "size": list(out)})
            layer = view(sliced, [image("x", shape, draw.dtype)], image("y", out, draw.dtype))
            yield Case(f"slice of {length} at {start}", ("tails: run",), layer, drawn_inputs(draw, layer)[:1])
            before, after = [1, start], [start % 2, length % 7]
            params = {"before": before, "after": after, "value": draw.choose(-3 if draw.dtype == "int8" else 253, 0)}
            padded = tuple(a + n + b for a, n, b in zip(before, out, after, strict=True))
            layer = view(Move(kind="pad", params=params), [image("x", out, draw.dtype)], image("y", padded, draw.dtype))
            yield Case(f"pad of {length} at {start}", ("tails: run",), layer, drawn_inputs(draw, layer)[:1])


def _turns() -> Iterator[Case]:
    """Rows of pairs of bytes, of which every second or fourth begins in a word as the first does, in both tensors."""
    for number, (rows, length, start) in enumerate(
        product((15, 16, 17, 27, 28, 33), (16, 18, 26, 58, 90, 158, 160), range(5))
    ):
        draw = Draw(number, ("int8", "uint8")[number % 2])
        shape, out = (rows, length + (2, 6, 4, 5)[number % 4] + start), (rows, length)
        sliced = Move(kind="slice", params={"begin": [0, start], "stride": [1, 1], "size": list(out)})
        layer = view(sliced, [image("x", shape, draw.dtype)], image("y", out, draw.dtype))
        name = f"slice of {rows}x{length} at {start} of {shape[1]}"
        yield Case(name, ("tails: run",), layer, drawn_inputs(draw, layer)[:1])


def _blocks() -> Iterator[Case]:
    """Transpositions of a few whole blocks of elements and what is left of them, one after the other."""
    sizes = (1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 18, 19)
    for number, (rows, columns) in enumerate((n, m) for n in sizes for m in sizes):
        draw = Draw(number, ("int8", "uint8")[number % 2])
        shape, permutation = (2, rows, columns), [0, 2, 1]
        if number % 3 == 0:
            shape, permutation = (rows, 3, columns), [2, 1, 0]
        out = tuple(shape[axis] for axis in permutation)
        transposed = Move(kind="transpose", params={"permutation": permutation})
        layer = view(transposed, [image("x", shape, draw.dtype)], image("y", out, draw.dtype))
        yield Case(f"transpose of {rows}x{columns}", ("transpose",), layer, drawn_inputs(draw, layer)[:1])


def _pixels() -> Iterator[Case]:
    """Pixels of each size up to two words and beyond, in rows that repeat."""
    for channels in (*range(1, 17), 24, 37, 40):
        for layout in ("NHWC", "NCHW"):
            draw = Draw(channels, ("int8", "uint8")[channels % 2])
            params = {"rows": [0, 0, 1, 1, 1, 0], "columns": [2, 0, 0, 1, 1, 2, 2]}
            x, y = (image(n, (2, h, w, channels), draw.dtype, layout) for n, h, w in (("x", 2, 3), ("y", 6, 7)))
            layer = view(Move(kind="resize_nearest_neighbor", params=params), [x], y)
            name = f"resize of {channels} channels {layout}"
            yield Case(name, ("resize_nearest_neighbor",), layer, drawn_inputs(draw, layer)[:1])


def _words() -> Iterator[Case]:
    """Runs of every length up to three 64-bit words, at several starts: what words can copy, and what not."""
    for length in range(1, 25):
        for start in (0, 4, 8, 3):
            for dtype in ("int8", "int32"):
                draw = Draw(length + 100 * start, dtype)
                shape, rows = (5, length + start + (-(length + start) % 8 if length % 2 else 1)), 5
                params = {"begin": [0, start], "stride": [1, 1], "size": [rows, length]}
                if dtype == "int32" and length > 6:
                    continue
                layer = view(
                    Move(kind="slice", params=params), [image("x", shape, dtype)], image("y", (rows, length), dtype)
                )
                name = f"slice of {length} at {start} {dtype}"
                yield Case(name, ("tails: run",), layer, drawn_inputs(draw, layer)[:1])
    for number, lengths in enumerate(((8, 16), (4, 12), (16, 3, 16), (32,), (24, 8, 8, 40), (4, 4))):
        for dtype in ("int8", "int32"):
            draw = Draw(number, dtype)
            inputs = [image(f"x{n}", (6, length), dtype) for n, length in enumerate(lengths)]
            layer = view(Concatenation(axis=1), inputs, image("y", (6, sum(lengths)), dtype))
            name = f"concatenation of {lengths} {dtype}"
            yield Case(name, ("tails: run", "concatenation"), layer, drawn_inputs(draw, layer)[:1])


def _transposes() -> Iterator[Case]:
    """Axes exchanged within small blocks and large ones, of single elements and of a few: of 1, 2, 4 and 8 bytes."""
    sizes = ((3, 4, 16, 1), (7, 2, 5, 1), (6, 3, 3, 1), (4, 9, 33, 1), (2, 40, 3, 1), (1, 3, 150, 1), (5, 2, 130, 1))
    runs = (
        (3, 5, 6, 2),
        (3, 5, 6, 4),
        (2, 9, 3, 8),
        (1, 2, 3, 32),
        (2, 17, 18, 1),
        (1, 64, 20, 1),
        (3, 8, 8, 1),
        (9, 2, 2, 1),
    )
    for number, ((batch, rows, columns, run), dtype) in enumerate(product((*sizes, *runs), ("int8", "int16", "int32"))):
        draw = Draw(number, dtype)
        for order in ((0, 2, 1, 3), (2, 0, 1, 3), (1, 0, 2, 3), (3, 2, 1, 0)):
            size = (batch, rows, columns, run)
            out = tuple(size[axis] for axis in order)
            op = Move(kind="transpose", params={"permutation": list(order)})
            layer = view(op, [image("x", size, dtype)], image("y", out, dtype))
            name = f"transpose of {size} by {order} {dtype}"
            yield Case(name, ("transpose", "tails: block"), layer, drawn_inputs(draw, layer)[:1])
