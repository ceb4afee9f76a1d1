"""What each operator takes: how many inputs and outputs, of which types, with which table of options."""

from __future__ import annotations

from dataclasses import dataclass

EIGHT_BITS = ("int8", "uint8")
_COMPUTED = (*EIGHT_BITS, "float32")
_NUMBERS = (*_COMPUTED, "int32", "int64")
_MOVED = (*_NUMBERS, "int16", "bool")
MANY = 1 << 31


@dataclass(frozen=True)
class Signature:
    """One operator.

    inputs    the least and the most it takes; absent ones at the end do not count
    outputs   the least and the most it gives
    table     its options in the schema, '' when it has none that matter
    required  whether LiteRT's defaults (zeros) for a missing table make no sense
    types     of its data, that is of all tensors that are neither `indices` nor `own`
    indices   inputs that are shapes, axes and the like
    own       inputs whose type goes by rules of their own: weights and bias
    mixed     whether the output may have another type than the input
    """

    inputs: tuple[int, int] = (1, 1)
    outputs: tuple[int, int] = (1, 1)
    table: str = ""
    required: bool = True
    types: tuple[str, ...] = _COMPUTED
    indices: tuple[int, ...] = ()
    own: tuple[int, ...] = ()
    mixed: bool = False


_FLOAT = Signature(types=("float32",))
_UNARY = Signature()
_POOL = Signature(table="Pool2DOptions")
_REDUCE = Signature((2, 2), table="ReducerOptions", required=False, types=_NUMBERS, indices=(1,))


def _binary(table: str = "", types: tuple[str, ...] = _NUMBERS) -> Signature:
    return Signature((2, 2), table=table, required=False, types=types)


def _moves(inputs: int, indices: tuple[int, ...] = (), table: str = "", outputs: int = 1) -> Signature:
    return Signature((inputs, inputs), (1, outputs), table=table, types=_MOVED, indices=indices)


def _weighted(table: str, least: int = 2) -> Signature:
    return Signature((least, 3), table=table, own=(1, 2))


SIGNATURES = {
    "ABS": Signature(types=("float32", "int32")),
    "ADD": _binary("AddOptions"),
    "AVERAGE_POOL_2D": _POOL,
    "CONCATENATION": Signature((1, MANY), table="ConcatenationOptions", types=_MOVED),
    "CONV_2D": _weighted("Conv2DOptions", 3),  # LiteRT 2.3 refuses one without a bias
    "COS": _FLOAT,
    "DEPTHWISE_CONV_2D": _weighted("DepthwiseConv2DOptions"),
    "DEPTH_TO_SPACE": _moves(1, table="DepthToSpaceOptions"),
    "DEQUANTIZE": Signature(types=(*_COMPUTED, "int16", "float16"), mixed=True),
    "DIV": _binary("DivOptions"),
    "ELU": _FLOAT,
    "EXP": _FLOAT,
    "EXPAND_DIMS": _moves(2, (1,)),
    "FLOOR": _FLOAT,
    "FULLY_CONNECTED": _weighted("FullyConnectedOptions"),
    "HARD_SWISH": _UNARY,
    "L2_NORMALIZATION": Signature(table="L2NormOptions"),
    "LEAKY_RELU": Signature(table="LeakyReluOptions"),
    "LOG": _FLOAT,
    "LOGISTIC": _UNARY,
    "LOG_SOFTMAX": _FLOAT,
    "MAXIMUM": _binary(),
    "MAX_POOL_2D": _POOL,
    "MEAN": _REDUCE,
    "MINIMUM": _binary(),
    "MUL": _binary("MulOptions"),
    "NEG": Signature(types=("float32", "int32", "int64")),
    "PAD": _moves(2, (1,)),
    "PADV2": _moves(3, (1,)),
    "PRELU": _binary(types=("float32",)),
    "QUANTIZE": Signature(types=(*_COMPUTED, "int16", "int32"), mixed=True),
    "REDUCE_MAX": _REDUCE,
    "REDUCE_MIN": _REDUCE,
    "RELU": _UNARY,
    "RELU6": _UNARY,
    "RELU_N1_TO_1": _UNARY,
    "RESHAPE": Signature((1, 2), table="ReshapeOptions", required=False, types=_MOVED, indices=(1,)),
    "RESIZE_BILINEAR": Signature((2, 2), table="ResizeBilinearOptions", indices=(1,)),
    "RESIZE_NEAREST_NEIGHBOR": Signature((2, 2), table="ResizeNearestNeighborOptions", indices=(1,)),
    "RSQRT": _FLOAT,
    "SIN": _FLOAT,
    "SLICE": _moves(3, (1, 2)),
    "SOFTMAX": Signature(table="SoftmaxOptions"),
    "SPACE_TO_DEPTH": _moves(1, table="SpaceToDepthOptions"),
    "SPLIT": _moves(2, (0,), "SplitOptions", MANY),
    "SPLIT_V": _moves(3, (1, 2), "SplitVOptions", MANY),
    "SQRT": _FLOAT,
    "SQUARE": _FLOAT,
    "SQUARED_DIFFERENCE": _binary(types=("float32", "int32")),
    "SQUEEZE": _moves(1, table="SqueezeOptions"),
    "STRIDED_SLICE": _moves(4, (1, 2, 3), "StridedSliceOptions"),
    "SUB": _binary("SubOptions"),
    "SUM": _REDUCE,
    "TANH": _UNARY,
    "TRANSPOSE": _moves(2, (1,)),
}
