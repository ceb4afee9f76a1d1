"""ABS, ELU, EXP, GELU, LOG, NEG, RSQRT and SQRT on 8 bits: every value, against LiteRT."""

import re

import numpy as np
import pytest

from stages.base import StageError
from stages.ir.models.builder import ModelBuilder
from stages.ir.reference.partitions import reference_of
from stages.ir.reference.refusal import RunError
from tests.support.integer import compare, integer_graph, one_input

CASES = {
    "abs": ("ABS", "int8", None),
    "elu": ("ELU", "int8", None),
    "exp": ("EXP", "int8", None),
    "gelu": ("GELU", "int8", False),
    "gelu, uint8": ("GELU", "uint8", False),
    "gelu by tanh": ("GELU", "int8", True),
    "gelu by tanh, uint8": ("GELU", "uint8", True),
    "log": ("LOG", "int8", None),
    "neg": ("NEG", "int8", None),
    "rsqrt": ("RSQRT", "int8", None),
    "sqrt": ("SQRT", "int8", None),
}
POSITIVE = ("RSQRT", "SQRT")
Quant = tuple[float, int]


def model(op: str, dtype: str, approximate: bool | None, quant: Quant, out: Quant) -> bytes:
    options = ("", None) if approximate is None else ("GeluOptions", {"approximate": approximate})
    shape = (1, 16, 4, 4)
    return one_input(shape, dtype, quant, lambda b, x: b.emit(op, [x], shape, out, "y", *options))


def every_value(dtype: str) -> np.ndarray:
    limits = np.iinfo(dtype)
    return np.arange(limits.min, limits.max + 1).astype(dtype).reshape(1, 16, 4, 4)


@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
@pytest.mark.parametrize("case", CASES)
def test_every_value_is_as_litert_has_it(case: str, layout: str) -> None:
    """Scales from 1/300 to 1/2; every fifth time one scale for both. Exponentials overflow all integers."""
    op, dtype, approximate = CASES[case]
    rng, limits = np.random.default_rng(len(case)), np.iinfo(dtype)
    for number in range(12):
        scales = [float(np.float32(10 ** rng.uniform(-2.5, -0.3))) for _ in range(2)]
        points = rng.integers(limits.min, limits.max + 1, 2).tolist()
        quant = scales[0], -128 if op in POSITIVE else points[0]
        out = scales[0] if number % 5 == 0 else scales[1], points[1]
        comparison = compare(model(op, dtype, approximate, quant, out), [every_value(dtype)], layout)
        assert (comparison.wrong, [layer.op.op for layer in comparison.graph.layers if layer.kind != "move"]) == (
            {},
            ["activation"],
        )


@pytest.mark.parametrize("op", POSITIVE)
def test_what_litert_stops_at_is_as_zero(op: str) -> None:
    data = model(op, "int8", None, (0.1, 5), (0.05, -100))
    with pytest.raises(RunError, match=re.escape(f"({op}) is refused by LiteRT")):
        reference_of(data).run([every_value("int8")])
    table = integer_graph(data).constants["000/table"]
    assert set(table[:133].tolist()) == {int(table[133])}


@pytest.mark.parametrize("op", ["ABS", "ELU", "EXP", "LOG", "NEG", "RSQRT", "SQRT"])
def test_uint8_is_refused_as_by_litert(op: str) -> None:
    with pytest.raises(StageError, match=r"has the type uint8 in 'x'; supported: int8, float32"):
        integer_graph(model(op, "uint8", None, (0.1, 128), (0.1, 128)))


def test_what_the_reference_kernels_lack_is_judged_by_litert_s_usual_ones() -> None:
    b = ModelBuilder()
    x = b.input("x", (1, 4), "float32")
    y = b.emit("ROUND", [x], x.shape, None, "y")
    b.output(b.emit("ABS", [y], x.shape, None, "z"))
    reference = reference_of(b.build())
    (inference,) = reference.run([np.array([[-1.5, -0.5, 0.6, 2.5]], np.float32)])
    assert inference.tolist() == [[2, 0, 1, 2]]
    assert re.fullmatch(
        r"LiteRT (\S+) BUILTIN_REF for 1 of 2 operators, LiteRT \1 BUILTIN for 1 x ROUND", reference.described
    )
