"""Literals read back as the very same float32; the C library is found where it is used."""

import struct

from hypothesis import given
from hypothesis import strategies as st

from stages.codegen.floats import is_in_math_header, literal


def read_back(text: str) -> bytes:
    return struct.pack("f", float(text.removesuffix("f")))


@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_a_literal_reads_back_exactly(value: float) -> None:
    text = literal(value)
    assert read_back(text) == struct.pack("f", value)
    assert text.endswith("f")
    assert set(".e") & set(text)


def test_literals_are_short() -> None:
    assert literal(struct.unpack("f", struct.pack("f", 0.1))[0]) == "0.1f"
    assert literal(6.0) == "6.0f"
    assert literal(-128.0) == "-128.0f"
    assert literal(0.1, "float64") == "0.1"
    assert literal(float("-inf")) == "-INFINITY"


def test_what_needs_the_math_header() -> None:
    for name in ("expf", "log1pf", "erf", "erff", "INFINITY"):
        assert is_in_math_header(name)
    for name in ("fl_exp", "layer_001_logistic", "my_sqrt", "x"):
        assert not is_in_math_header(name)
