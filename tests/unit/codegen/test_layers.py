"""A layer that TVM makes of several functions: one function of layers.c with what all of them need."""

from stages.lower.codegen.layers import layer_function
from stages.lower.codegen.lower import CFunction, Param

ALL = frozenset({"input", "output", "value0", "sums"})
X, Y = Param("input", "input:0", "float32", 400), Param("output", "output:0", "float32", 40)


def value(count: int) -> Param:
    return Param("value0", "scratch:value0", "float32", count)


def own(count: int) -> Param:
    return Param("sums", "scratch:sums", "float32", count)


def test_scratch_of_one_name_has_the_size_of_the_largest() -> None:
    names = ("layer_000_mean_step0", "layer_000_mean_step1")
    steps = [
        CFunction(names[0], (X, value(80), own(400)), "    sums[0] = input[0];\n    value0[0] = sums[0];\n", ALL),
        CFunction(names[1], (value(80), Y, own(4)), "    sums[0] = value0[0];\n    output[0] = sums[0];\n", ALL),
    ]
    made = layer_function(steps, may_overlay=False)
    assert made.scratch == {"value0": 80, "sums": 400}
    assert made.roles == ("input:0", "scratch:value0", "scratch:sums", "output:0")
    assert made.text.body.split() == f"{names[0]}(input, value0, sums); {names[1]}(value0, output, sums);".split()
