"""Activations of 4 bits: half the bytes in the arena and in traces, compared by value."""

import json
from pathlib import Path

import numpy as np
import pytest

from stages.backends.kernels import registry
from stages.emit import EmitConfig
from stages.emit.build import emit
from stages.ir.graph import Graph, Layout, Tensor
from stages.ir.reference.integer import run_graph
from stages.tensorize import TensorizeConfig
from stages.tensorize.artifact import save
from stages.tensorize.choices import choose_kernels
from stages.tensorize.packing import pack_and_lower
from stages.tensorize.pass_context import PassContext
from stages.tensorize.transforms import transform
from tests.support.emitted import run_emitted, target_named
from tests.support.kernels.narrow import FOLDER, Repack

HOST = target_named("host")


def graph(shape: tuple[int, ...]) -> Graph:
    """The input in 4 bits, and back."""
    x = Tensor(name="x", shape=shape, dtype="int8", layout=Layout("NHWC"), tflite_index=0)
    first, narrow = transform(x, Layout("NHWC:4"), "narrow")
    second, y = transform(narrow, Layout("NHWC"), "y")
    layers = [first, second.model_copy(update={"index": 1})]
    return Graph({tensor.name: tensor for tensor in (x, narrow, y)}, layers, ["x"], ["y"])


@pytest.mark.parametrize("shape", [(1, 3, 4, 6), (1, 3, 5, 7)])
def test_they_take_their_bits_and_are_compared_by_value(shape: tuple[int, ...], tmp_path: Path) -> None:
    given, count = graph(shape), int(np.prod(shape))
    setting = PassContext.of(HOST, TensorizeConfig(), [*registry.kernels(HOST.kernels).values(), Repack()])
    source, out = tmp_path / "tensorized", tmp_path / "emitted"
    source.mkdir()
    out.mkdir()
    chosen = choose_kernels(given, setting)
    assert {choice.kernel.name for choice in chosen.choices.values()} == {"narrow.repack"}
    save(pack_and_lower(chosen, setting), source)
    emit(source, out, EmitConfig(), HOST, folders=registry.folders(HOST.kernels) | {FOLDER.name: FOLDER})
    described = json.loads((out / "model.json").read_text())
    assert {buffer["name"]: buffer["bytes"] for buffer in described["arena"]}["narrow"] == -(-count // 2)
    assert [trace["bytes"] for trace in described["traces"]] == [-(-count // 2), count]
    x = np.random.default_rng(1).integers(-8, 8, shape).astype(np.int8)
    (run,) = run_emitted(out, HOST, [[x]])
    values = run_graph(given, [x])
    np.testing.assert_array_equal(run.outputs[0], x)
    np.testing.assert_array_equal(run.traces["narrow"], values["narrow"])
