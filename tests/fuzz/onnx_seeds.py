"""Sound ONNX files that mutants are made of: drawn ones, integers, and those of the tests of import."""

from collections.abc import Callable
from functools import cache, partial
from random import Random

import onnx

from tests.onnx_networks import network
from tests.support.onnx_integers import pair, qdq, qdq_conv
from tests.unit.import_model.from_onnx import test_branches as branches
from tests.unit.import_model.from_onnx import test_float as floats
from tests.unit.import_model.from_onnx import test_integer_inputs as integer_inputs
from tests.unit.import_model.from_onnx import test_rewritten as rewritten

_FLOATS = ("channels last and back", "a shape that is computed", "reshape that mixes axes", "split", "where")
SEEDS: tuple[Callable[[], onnx.ModelProto], ...] = (
    *(partial(network, seed) for seed in range(4)),
    partial(qdq_conv, "int8", "int8", (4, 6, 3, 3), channels=True),
    *(partial(qdq, "uint8", "Relu"), partial(pair, "Add", "uint8", True)),
    *(partial(rewritten.network, name) for name in ("nested", "default of an inner one")),
    *(partial(branches.network, name) for name in ("shape", "nested")),
    *(partial(integer_inputs.network, name) for name in ("ids of a dequantized table", "bytes, channels last")),
    *(partial(floats.CASES.__getitem__, name) for name in _FLOATS),
)


@cache
def _bytes(number: int) -> bytes:
    return SEEDS[number]().SerializeToString()


def seed_onnx(rng: Random) -> tuple[str, bytes]:
    """A file's name and its bytes."""
    number = rng.randrange(len(SEEDS))
    return f"file {number}", _bytes(number)
