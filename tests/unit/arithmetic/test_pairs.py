"""Sums and products of two int8 numbers, against ONNX Runtime on all 65,536 pairs."""

from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

from stages.ir.arithmetic.pairs import Pair, exact_halves, halves_to_even, nearest_multipliers
from stages.ir.reference.onnx_runtime import session
from tests.support.onnx_graphs import model, node

A, B = (part.reshape(-1) for part in np.meshgrid(np.arange(-128, 128), np.arange(-128, 128), indexing="ij"))


def theirs(op: str, quants: Any, unsigned: bool, qlinear: bool) -> Any:
    """ONNX Runtime's results as int8 numbers."""
    kind, lowered = (np.uint8, 128) if unsigned else (np.int8, 0)
    constants: dict[str, Any] = {}
    for name, (scale, zero) in zip("abc", quants, strict=True):
        constants[f"{name}s"], constants[f"{name}z"] = np.float32(scale), np.array(zero + lowered, kind)
    if qlinear:
        names = ["a", "as", "az", "b", "bs", "bz", "cs", "cz"]
        nodes = [node(f"QLinear{op}", names, ["y"], "com.microsoft")]
    else:
        nodes = [node("DequantizeLinear", [x, f"{x}s", f"{x}z"], [f"{x}r"]) for x in "ab"]
        nodes += [node(op, ["ar", "br"], ["v"]), node("QuantizeLinear", ["v", "cs", "cz"], ["y"])]
    types = dict.fromkeys("aby", 2 if unsigned else 3)
    proto = model(nodes, {"a": (65536,), "b": (65536,)}, ["y"], constants, types=types)
    feeds = {"a": (A + lowered).astype(kind), "b": (B + lowered).astype(kind)}
    (found,) = session(proto, "pairs").run(None, feeds)
    return found.astype(int) - lowered


@pytest.mark.parametrize("unsigned", [False, True])
@pytest.mark.parametrize(
    ("op", "qlinear"), [("Add", False), ("Sub", False), ("Mul", False), ("Add", True), ("Mul", True)]
)
def test_every_pair_is_onnx_runtimes(op: str, qlinear: bool, unsigned: bool) -> None:
    random = np.random.default_rng(1)
    for _ in range(4):
        scales = random.uniform(0.005, 0.05, 3)
        if op == "Mul":
            scales[2] = scales[0] * scales[1] * random.uniform(50, 200)
        quants = [(float(np.float32(scale)), int(random.integers(-128, 128))) for scale in scales]
        lowered = (128 if unsigned else 0) if qlinear else None
        pair = Pair(op.lower(), *quants, lowered=lowered)
        assert np.array_equal(pair.expected(A, B), theirs(op, quants, unsigned, qlinear))
        nearest = nearest_multipliers(pair)
        assert nearest is not None
        fixed, wrong = nearest
        constants, shifts = (tuple(part) for part in zip(*fixed, strict=True))
        differ = pair.computed(A, B, constants, shifts) != pair.expected(A, B)
        assert differ.sum() == wrong <= (1 if qlinear else 0)


@pytest.mark.parametrize("zero", [0, -3])
@pytest.mark.parametrize("unsigned", [False, True])
@pytest.mark.parametrize(("op", "qlinear", "scales"), [
    ("Add", True, (0.03, 0.03, 0.06)), ("Add", True, (0.1, 0.05, 0.4)), ("Add", True, (0.7, 0.0875, 0.35)),
    ("Add", True, (0.06, 0.02, 0.04)), ("Mul", True, (0.25, 0.5, 2.0)), ("Mul", True, (0.75, 0.5, 2.0)),
    ("Add", False, (0.5, 0.5, 1.0)), ("Sub", False, (0.25, 0.5, 1.0)), ("Mul", False, (0.5, 0.125, 4.0)),
])  # fmt: skip
def test_exact_halves_go_to_even(op: str, qlinear: bool, scales: Any, unsigned: bool, zero: int) -> None:
    """Of a QLinear operator with its zero point, of a QuantizeLinear without."""
    quants = [(float(np.float32(scale)), zero + more) for scale, more in zip(scales, (1, -6, 0), strict=True)]
    pair = Pair(op.lower(), *quants, lowered=(128 if unsigned else 0) if qlinear else None)
    halves = exact_halves(pair)
    assert halves is not None
    left, right = ((x - quant[1]) * by for x, quant, by in zip((A, B), quants, halves.times, strict=False))
    total = {"Add": np.add, "Sub": np.subtract, "Mul": np.multiply}[op](left, right)
    found = np.clip(halves_to_even(total, halves.shift, halves.parity) + quants[2][1], -128, 127)
    assert np.array_equal(found, theirs(op, quants, unsigned, qlinear))


def test_exact_halves_have_no_multipliers() -> None:
    assert nearest_multipliers(Pair("add", (0.5, 0), (0.5, 0), (1.0, 0))) is None


def test_halves_that_float32_does_not_keep() -> None:
    """Of real numbers that are rounded one by one; and quotients of many bits."""
    assert exact_halves(Pair("add", (0.1, 0), (0.1, 0), (0.2, 0))) is None
    assert exact_halves(Pair("add", (0.5, 0), (0.3, 0), (1.0, 0), lowered=0)) is None
