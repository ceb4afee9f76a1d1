"""Layers of real numbers are named, with what they cost on a core without floating-point unit."""

import pytest

from stages.ir.models.builder import ModelBuilder
from stages.tensorize.packing import float_warnings
from tests.support.emitted import target_named
from tests.support.integer import integer_graph


@pytest.mark.parametrize(
    ("target", "told"),
    [
        (
            "rv64-rvp",
            (
                "rv64-rvp has no floating-point unit: 2 float layers will take some 1,200 instructions per inference: "
                "'last' (exp), 'inside' (exp)"
            ),
        ),
        (
            "host",
            (
                "1 float layer between integers: a core without floating-point unit takes some 230 instructions "
                "for them: 'inside' (exp)"
            ),
        ),
    ],
)
def test_float_layers_are_named(target: str, told: str) -> None:
    """`inside` is between integers, `last` gives the output."""
    b = ModelBuilder()
    x = b.input("x", (1, 8), "int8", 0.1, 0)
    inside = b.emit("EXP", [b.dequantize(x, name="real")], (1, 8), None, "inside", "ExpOptions")
    again = b.dequantize(b.quantize(inside, "int8", (0.1, 0), name="integers"), name="again")
    b.output(b.emit("EXP", [again], (1, 8), None, "last", "ExpOptions"))
    graph = integer_graph(b.build())
    soft = {
        layer.index: {"inside": 234.0, "last": 987.0}[layer.name] for layer in graph.layers if layer.op.op == "float"
    }
    assert float_warnings(graph, soft, target_named(target)) == (told,)
    assert float_warnings(graph, {}, target_named(target)) == ()
