"""Cases of SVDF: from any state on, one step."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from stages.ir.graph import LayerView
from stages.ir.operators.svdf import FloatSvdf, NarrowSvdf, Svdf
from tests.conformance.case import Case, case, drawn_inputs, whole
from tests.conformance.draw import Draw, bounds, image, view, with_constants, with_op, without_bias
from tests.conformance.sums import tie_constants, ties

OPS = ("svdf", "float_svdf", "narrow_svdf")


def svdf(draw: Draw, batch: int, depth: int, units: int, rank: int, memory: int, **fields: Any) -> LayerView:
    """On int8; features of about a quarter of int16's range."""
    draw = Draw(draw.seed)
    first = draw.multiplier(1, 4)
    second = draw.multiplier(-24, -20)
    op = Svdf(
        **draw.clamped(),
        rank=rank,
        depth=depth,
        memory=memory,
        input_zero_point=draw.zero_point(),
        feature_multiplier=first[0],
        feature_shift=first[1],
        multiplier=second[0],
        shift=second[1],
    ).model_copy(update=fields)
    filters = units * rank
    constants = {
        "feature": draw.array((filters, depth), "int8"),
        "time": draw.array((filters, memory), "int16"),
        "bias": draw.rng.integers(-(1 << 24), 1 << 24, units).astype(np.int32),
    }
    state = image("s", (batch, filters * memory), "int16")
    return view(op, [image("x", (batch, depth), "int8")], image("y", (batch, units), "int8"), constants, (state,))


def narrow_svdf(draw: Draw, batch: int, depth: int, units: int, rank: int, memory: int, **fields: Any) -> LayerView:
    """On int8 with a state of int8; features of about a quarter of its range."""
    draw = Draw(draw.seed)
    wide = svdf(draw, batch, depth, units, rank, memory)
    first, second = draw.multiplier(-9, -4), draw.multiplier(-16, -10)
    scales = {"multiplier": second[0], "shift": second[1], "feature_multiplier": first[0], "feature_shift": first[1]}
    op = NarrowSvdf(**{**wide.op.model_dump(exclude={"op"}), **scales, "state_zero_point": draw.zero_point(), **fields})
    constants = {
        "feature": wide.constant("feature"),
        "time": draw.array((units * rank, memory), "int8"),
        "bias": draw.rng.integers(-(1 << 14), 1 << 14, units).astype(np.int32),
    }
    state = image("s", (batch, units * rank * memory), "int8")
    return view(op, [image("x", (batch, depth), "int8")], image("y", (batch, units), "int8"), constants, (state,))


def float_svdf(draw: Draw, batch: int, depth: int, units: int, rank: int, memory: int) -> LayerView:
    """On whole numbers and halves, whose sums are exact in any order."""
    low, high = draw.choose((None, None), (0.0, None), (0.0, 6.0), (-1.0, 1.0))
    op = FloatSvdf(rank=rank, depth=depth, memory=memory, low=low, high=high)
    filters = units * rank
    constants = {
        "feature": (draw.rng.integers(-4, 5, (filters, depth)) * 0.5).astype(np.float32),
        "time": (draw.rng.integers(-4, 5, (filters, memory)) * 0.25).astype(np.float32),
        "bias": draw.rng.integers(-20, 20, units).astype(np.float32),
    }
    state = image("s", (batch, filters * memory), "float32")
    return view(op, [image("x", (batch, depth), "float32")], image("y", (batch, units), "float32"), constants, (state,))


def drawn(draw: Draw) -> LayerView:
    sizes = (draw.choose(1, 1, 3), draw.integer(1, 40), draw.integer(1, 9), draw.choose(1, 2, 3), draw.integer(1, 12))
    layer = svdf(draw, *sizes)
    return without_bias(layer) if draw.integer(0, 3) == 0 else layer


def mandatory() -> Iterator[Case]:
    for part in (_tails, _ties, _extremes):
        yield from part()


def _tails() -> Iterator[Case]:
    """Each size of each axis."""
    usual = {"batch": 1, "depth": 5, "units": 3, "rank": 2, "memory": 4}
    for axis, most in (("batch", 3), ("depth", 9), ("units", 5), ("rank", 4), ("memory", 9)):
        for size in range(1, most + 1):
            sizes = usual | {axis: size}
            for maker in (svdf, float_svdf, narrow_svdf):
                draw = Draw(size)
                layer = maker(draw, **sizes)
                layer = without_bias(layer) if size == 2 else layer
                inputs = drawn_inputs(draw, layer)
                if maker is float_svdf:  # beyond float32 sums depend on their order
                    inputs = ((whole(inputs[0][0]),),)
                yield Case(f"{layer.op.op} {axis} {size}", ("tails", "extremes"), layer, inputs)


def _ties() -> Iterator[Case]:
    """Results on the halves of their rounding: with weights of 0 a sum is its bias; features on those of theirs."""
    for shift in (-20, -11, -3, -1, 0, 1):
        draw = Draw(100 + shift)
        for number, constants in enumerate(tie_constants("double", shift, 24, draw)):
            if len({*constants["multiplier"].tolist()}) > 1:
                continue  # it has one for all units
            fields = {"multiplier": int(constants["multiplier"][0]), "shift": shift}
            layer = svdf(draw, 1, 3, 24, 1, 2, act_min=-128, act_max=127, output_zero_point=0, **fields)
            still = {"time": np.zeros_like(layer.constant("time")), "bias": constants["bias"]}
            yield case(f"svdf ties {shift} {number}", draw, with_constants(layer, **still), "ties", "shifts")
        for tie in ties("double", shift, draw):
            if abs(tie.accumulator) > 127 * 127:
                continue
            feature = np.array([[a, b] for a in (127, 1) for b in (1, -1)], np.int8)
            fields = {"feature_multiplier": tie.multiplier, "feature_shift": shift, "input_zero_point": 0}
            layer = with_constants(svdf(draw, 1, 2, 4, 1, 2, **fields), feature=feature)
            high, low = divmod(tie.accumulator, 127)
            x = np.array([[min(max(high, -128), 127), low]], np.int8)
            yield Case(f"svdf feature {shift} {tie.accumulator}", ("ties", "shifts"), layer, ((x,),))


def _extremes() -> Iterator[Case]:
    """Sums as large as they get, features that saturate, zero points at both ends."""
    for number in range(8):
        draw = Draw(number)
        low, high = bounds("int8")
        fields = {"input_zero_point": (low, high)[number % 2], "output_zero_point": (low, high)[number // 2 % 2]}
        layer = svdf(draw, 2, 16, 5, 2, 6, act_min=low, act_max=high, **fields)
        ends = np.array(bounds("int8"))[draw.rng.integers(0, 2, layer.constant("feature").shape)]
        old = np.array(bounds("int16"))[draw.rng.integers(0, 2, layer.constant("time").shape)]
        layer = with_constants(layer, feature=ends.astype(np.int8), time=old.astype(np.int16))
        layer = with_op(layer, feature_shift=(7, -4)[number // 4])
        yield case(f"svdf extremes {number}", draw, layer, "extremes", "zero points")
        fields |= {"act_min": low, "act_max": high, "feature_shift": (3, -8)[number // 4]}
        layer = narrow_svdf(draw, 2, 16, 5, 2, 6, **fields, state_zero_point=(high, low)[number % 2])
        yield case(f"narrow_svdf extremes {number}", draw, layer, "extremes", "zero points")
