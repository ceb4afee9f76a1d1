"""Bidirectional layers become one layer for each direction, with LiteRT's results byte for byte."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stages.base import StageError
from stages.import_model.normalize import normalized
from stages.ir.models.builder import ModelBuilder
from stages.ir.models.tflite_writer import Tensor
from stages.ir.reference.partitions import reference_of
from tests.support.stages_run import verified

BATCH, STEPS, DEPTH = 2, 5, 4
UNITS = {"LSTM": (6, 6), "RNN": (3, 6)}  # forward, backward; LiteRT refuses an LSTM with two sizes


def bidirectional(
    kind: str, *, merged: bool, time_major: bool, auxiliary: bool = False, weights: bool = False
) -> bytes:
    """A layer that reads `x` and, if `auxiliary`, `other`."""
    rng, b = np.random.default_rng(0), ModelBuilder()
    shape = (STEPS, BATCH, DEPTH) if time_major else (BATCH, STEPS, DEPTH)
    x = b.input("x", shape, "float32")
    other = b.input("other", shape, "float32") if auxiliary else None
    gates, sizes = (4 if kind == "LSTM" else 1), UNITS[kind]

    def drawn(name: str, *sizes: int) -> list[Tensor]:
        return [b.constant(f"{name}{k}", rng.normal(0, 0.8, sizes).astype(np.float32)) for k in range(gates)]

    directions: list[list[Tensor | None]] = []
    for at, units in enumerate(sizes):
        parts: list[Tensor | None] = [*drawn(f"w{at}", units, DEPTH), *drawn(f"r{at}", units, units)]
        parts += [None] * (3 if kind == "LSTM" else 0) + drawn(f"b{at}", units)
        directions.append(parts + [None] * (2 if kind == "LSTM" else 0))
    states = [b.variable(f"s{at}{n}", (BATCH, units), "float32") for at, units in enumerate(sizes) for n in range(2)]
    if kind == "LSTM":
        inputs = [x, *directions[0], *directions[1], *states, other, *[None] * 8]
        fields: dict[str, Any] = {"fusedActivationFunction": 4, "cellClip": 0.9}
    else:
        inputs = [x, *directions[0], states[0], *directions[1], states[2], other, None, None]
        fields = {"fusedActivationFunction": 4}
    outputs = [
        b.tensor(f"y{n}", (*shape[:2], size), "float32") for n, size in enumerate([sum(sizes)] if merged else sizes)
    ]
    fields |= {"mergeOutputs": merged, "timeMajor": time_major}
    op, table = f"BIDIRECTIONAL_SEQUENCE_{kind}", f"BidirectionalSequence{kind}Options"
    b.operator(op, inputs, outputs, table, fields)
    for output in outputs:
        b.output(output)
    return b.build()


@pytest.mark.parametrize("time_major", [False, True])
@pytest.mark.parametrize("merged", [False, True])
@pytest.mark.parametrize("kind", ["LSTM", "RNN"])
def test_results_and_states_are_those_of_litert(*, kind: str, merged: bool, time_major: bool) -> None:
    data = bidirectional(kind, merged=merged, time_major=time_major)
    new = normalized(data, "net")
    assert not any(operator.op.startswith("BIDIRECTIONAL") for operator in new.info.operators)
    assert any("mixes up its outputs" in note for note in new.notes) == (kind == "LSTM" and merged and not time_major)
    # LiteRT's merged LSTM mixes up several sequences if time is not the first axis, so join its separate results.
    separate = bidirectional(kind, merged=False, time_major=time_major)
    theirs, ours, rng = reference_of(separate), reference_of(new.data), np.random.default_rng(1)
    for _ in range(3):
        inputs = [rng.normal(0, 1, tensor.shape).astype(np.float32) for tensor in theirs.inputs]
        results = theirs.run(inputs)
        expected = [np.concatenate(results, axis=2)] if merged else results
        for one, other in zip(ours.run(inputs), expected, strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("kind", ["LSTM", "RNN"])
def test_the_firmware_computes_it(tmp_path: Path, kind: str) -> None:
    found = verified(bidirectional(kind, merged=True, time_major=False), "host", tmp_path)
    assert (found["mismatches"], found["float"]["max_relative"] < 1e-5) == (0, True)


def test_an_auxiliary_input_is_refused() -> None:
    data = bidirectional("LSTM", merged=True, time_major=False, auxiliary=True)
    with pytest.raises(StageError, match="SEQUENCE_LSTM\\) has an auxiliary input"):
        normalized(data, "net")
