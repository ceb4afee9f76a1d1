"""Sums and products of two int8 numbers, against ONNX Runtime on all 65,536 pairs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

from stages.arithmetic.pairs import Pair, nearest_multipliers
from stages.reference.onnx_runtime import session
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
        assert np.array_equal(pair.wanted(A, B), theirs(op, quants, unsigned, qlinear))
        nearest = nearest_multipliers(pair)
        assert nearest is not None
        fixed, wrong = nearest
        constants, shifts = (tuple(part) for part in zip(*fixed, strict=True))
        differ = pair.computed(A, B, constants, shifts) != pair.wanted(A, B)
        assert differ.sum() == wrong <= (1 if qlinear else 0)


def test_exact_halves_have_no_multipliers() -> None:
    assert nearest_multipliers(Pair("add", (0.5, 0), (0.5, 0), (1.0, 0))) is None
