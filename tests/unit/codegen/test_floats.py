"""Literals read back as the very same float32; the C library is found where it is used."""

import struct
import subprocess
from collections.abc import Callable
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from tvm import tirx

from stages.backends.kernels.tir.block import Block, Function, Operand, store
from stages.lower.codegen.floats import literal
from stages.lower.codegen.lower import CFunction, to_c


def read_back(text: str) -> bytes:
    return struct.pack("f", float(text.removesuffix("f")))


@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_a_literal_reads_back_exactly(value: float) -> None:
    text = literal(value)
    assert read_back(text) == struct.pack("f", value)
    assert text.endswith("f")
    assert set(".e") & set(text)


def of_float(value: Callable[[Any], Any]) -> CFunction:
    """The function y[0] = value(x[0]) of float32."""
    operands = (Operand("x", (1,), "float32"), Operand("y", (1,), "float32", "w"))
    block = Block("all", operands, lambda b: store(b.y, value(b.x[0]), 0))
    with Function("layer") as f:
        f.place(block, x=f.input(0, (1,), "float32"), y=f.output(0, (1,), "float32"))
    made = f.lowering()
    return to_c({"layer": made.workload}, {"layer": made.roles})["layer"]


FUNCTIONS = {
    "fabsf": tirx.abs,
    "exp2f": tirx.exp2,
    "atan2f": lambda x: tirx.atan2(x, x),
    "copysignf": lambda x: tirx.copysign(x, x),
    "hypotf": lambda x: tirx.hypot(x, x),
    "expm1f": lambda x: tirx.call_pure_extern("float32", "expm1f", x),
}


def test_every_function_of_c_is_declared(tmp_path: Any) -> None:
    """No operator's function is implicit: layers.c includes what declares it."""
    for name, value in FUNCTIONS.items():
        made = of_float(value)
        assert f"{name}(" in made.body, made.body
        assert made.headers == {"<math.h>"}, name
        code = f"#include <math.h>\nvoid f(const float *input, float *output)\n{{\n{made.body}}}\n"
        command = ["gcc", "-std=c11", "-Werror", "-Wall", "-xc", "-c", "-", "-o", str(tmp_path / "x.o")]
        subprocess.run(command, input=code, text=True, check=True)
