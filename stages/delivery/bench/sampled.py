"""Random layers of all kinds with several kernels, to test the selection of kernels.

Sizes are typical of microcontrollers. Rare options are sampled as often as common ones.
"""

from collections.abc import Iterator
from math import prod
from random import Random
from typing import Any

from pydantic import ValidationError

from stages.ir.models.spec import OpModel

_ELEMENTS = 60_000  # limit of the input; the limit of the output is four times as high
_MAX_MACS = 4_000_000

Options = dict[str, Any]


def sampled_layers(seed: int, count: int) -> Iterator[OpModel]:
    """Yield `count` layers. The same seed yields the same layers."""
    random = Random(seed)
    while count:
        options = random.choice(_KINDS)(random)
        try:
            spec = OpModel.model_validate(options)
        except ValidationError:  # options that contradict each other
            continue
        if _fits(spec):
            count -= 1
            yield spec


def described(spec: OpModel) -> str:
    """Return the model in a recipe's notation, on one line."""
    options = spec.model_dump(mode="json", exclude_unset=True)
    return ", ".join(f"{key}: {value}" for key, value in options.items())


def _fits(spec: OpModel) -> bool:
    elements = prod(spec.shape)
    outputs = {"conv2d": spec.out_channels or 1, "depthwise_conv2d": spec.depth_multiplier * spec.shape[-1]}
    channels = outputs.get(spec.op, spec.shape[-1] if len(spec.shape) == 3 else 1)
    pixels = elements // spec.shape[-1] if len(spec.shape) == 3 else 1
    depth = prod(spec.kernel) * (spec.shape[-1] // spec.groups if spec.op == "conv2d" else 1)
    return elements <= _ELEMENTS and pixels * channels <= 4 * _ELEMENTS and pixels * channels * depth <= _MAX_MACS


def _channels(random: Random) -> int:
    """Return mostly multiples of eight, as in networks; at times one that fits no register."""
    usual = random.choice((8, 16, 24, 32, 40, 48, 64, 72, 96, 128, 160, 256))
    return random.choice((usual, usual, random.choice((4, 12, 20, 36, 44, 172)), random.randint(1, 70)))


def _image(random: Random, channels: int) -> tuple[int, int, int]:
    height, width = random.choice((1, 2, 3, 5, 7, 9, 12, 14, 16, 20, 24, 28, 33, 48)), 0
    width = random.choice((height, height, random.randint(1, 40)))
    return height, width, channels


def _window(random: Random, shape: tuple[int, int, int]) -> Options:
    size = random.choice((1, 2, 3, 3, 3, 5, 7))
    kernel = random.choice(((size, size), (size, size), (size, 1), (1, size), shape[:2]))
    stride = random.choice((1, 1, 1, 2))
    return {"kernel": kernel, "stride": (stride, stride), "padding": random.choice(("same", "valid"))}


def _conv2d(random: Random) -> Options:
    shape = _image(random, random.choice((1, 3, *(_channels(random) for _ in range(6)))))
    outputs = random.choice((1, 2, 3, *(_channels(random) for _ in range(6))))
    window = random.choice(({}, {}, _window(random, shape)))
    return {"op": "conv2d", "shape": shape, "out_channels": outputs, **window}


def _grouped(random: Random) -> Options:
    groups, depth, width = random.choice((2, 3, 4, 8)), random.choice((4, 8, 12, 16)), random.choice((4, 8, 16))
    shape = _image(random, groups * depth)
    window = _window(random, shape)
    return {"op": "conv2d", "shape": shape, "out_channels": groups * width, "groups": groups, **window}


def _depthwise(random: Random) -> Options:
    shape = _image(random, random.choice((1, *(_channels(random) for _ in range(6)))))
    options: Options = {"op": "depthwise_conv2d", "shape": shape, **_window(random, shape)}
    special = random.random()
    if special < 0.15:
        options["depth_multiplier"] = random.choice((2, 3, 4, 8))
    elif special < 0.3:
        options |= {"dilation": (2, 2), "stride": (1, 1)}
    return options


def _connected(random: Random) -> Options:
    depth, units = random.choice((_channels(random), random.randint(1, 1500))), random.choice((1, 2, 3, 10, 12))
    units = random.choice((units, _channels(random)))
    return {"op": "fully_connected", "shape": (depth,), "batch": random.choice((1, 1, 1, 4)), "out_channels": units}


def _pool(random: Random) -> Options:
    shape = _image(random, _channels(random))
    return {"op": random.choice(("avg_pool2d", "max_pool2d")), "shape": shape, **_window(random, shape)}


def _binary(random: Random) -> Options:
    shape = _image(random, _channels(random))
    other_shape = random.choice((shape, (1, 1, shape[2]), (1, 1, 1), (shape[0], shape[1], 1)))
    options = {"op": random.choice(("add", "mul", "sub")), "shape": shape, "other_shape": other_shape}
    return options | random.choice(({}, {"constant": True}))


def _other(random: Random) -> Options:
    shape = _image(random, _channels(random))
    options: tuple[Options, ...] = (
        {"op": "mean", "axes": (1, 2)},
        {"op": "logistic"},
        {"op": "hard_swish"},
        {"op": "softmax"},
        {"op": "pad", "pads": ((0, 0), (1, 1), (1, 1), (0, 0))},
        {"op": "transpose", "permutation": (0, *random.choice(((3, 1, 2), (2, 1, 3), (2, 3, 1))))},
        {"op": "concatenation", "axis": random.choice((1, 3))},
    )
    return {**random.choice(options), "shape": shape}


def _wide(random: Random) -> Options:
    """Return a layer with 16-bit activations."""
    return {**random.choice((_conv2d, _depthwise, _connected))(random), "dtype": "int16"}


def _rare(random: Random) -> Options:
    rows, depth, units = (random.choice((1, 4, 7, 16, 24, 40, 64)) for _ in range(3))
    return random.choice(
        (
            {"op": "prelu", "shape": _image(random, _channels(random))},
            {"op": "batch_matmul", "shape": (rows, depth), "other_shape": (depth, units)},
            {"op": "lstm", "shape": (random.choice((1, 4, 10)), depth), "out_channels": units},
        )
    )


_KINDS = (
    *(_conv2d, _conv2d, _conv2d, _grouped, _depthwise, _depthwise, _depthwise, _connected, _pool, _binary, _other),
    *(_wide, _rare),
)
