"""Literals read back as the very same float32; the C library is found where it is used."""

import struct

from hypothesis import given
from hypothesis import strategies as st

from stages.codegen.floats import literal, uses_math


def read_back(text: str) -> bytes:
    return struct.pack("f", float(text.strip("()").removesuffix("f")))


@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_a_literal_reads_back_exactly(value: float) -> None:
    text = literal(value)
    assert read_back(text) == struct.pack("f", value)
    assert text.strip("()").endswith("f")
    assert set(".e") & set(text)


def test_literals_are_short() -> None:
    assert literal(struct.unpack("f", struct.pack("f", 0.1))[0]) == "0.1f"
    assert literal(6.0) == "6.0f"
    assert literal(-128.0) == "(-128.0f)"
    assert literal(0.1, "float64") == "0.1"
    assert literal(float("-inf")) == "(-INFINITY)"


def test_what_needs_the_math_header() -> None:
    for text in ("y = expf(x);", "log1pf(x)", "fabsf(x)", "x < INFINITY"):
        assert uses_math(text)
    for text in ("fl_exp(x)", "layer_001_logistic(x);", "my_sqrt(x)", "y = x;"):
        assert not uses_math(text)
