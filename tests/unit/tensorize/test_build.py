"""The artifact: a plan that explains itself, constants that fit their buffers, the same bytes every time."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stages.ir.graph import Layer, Move, Tensor
from stages.tensorize import TensorizeConfig
from stages.tensorize.artifact import save
from stages.tensorize.build import _ignored, tensorize_graph
from tests.support.emitted import target_named
from tests.support.kernels.mini import MiniGemm, PlainGemm, mini_graph


def made(**more: Any) -> Any:
    kernels, costs = more.pop("kernels", [PlainGemm(), MiniGemm()]), more.pop("costs", None)
    graph = more.pop("graph", mini_graph())
    return tensorize_graph(graph, target_named("host"), TensorizeConfig(**more), kernels, costs=costs)


def test_the_same_graph_gives_the_same_bytes_and_no_path_of_this_machine(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        save(made(), tmp_path / folder)
    files = sorted(path.name for path in (tmp_path / "a").iterdir())
    assert files == ["constants.npz", "graph.json", "plan.json", "tir.json", "weights.npz"]
    for file in files:
        content = (tmp_path / "a" / file).read_bytes()
        assert content == (tmp_path / "b" / file).read_bytes(), file
        assert b"mini/__init__.py" not in content
        assert str(Path.cwd()).encode() not in content


def test_a_reshape_that_shares_memory_needs_no_kernel() -> None:
    graph = mini_graph()
    graph.tensors["flat"] = Tensor(name="flat", shape=(40,), dtype="int8", alias_of="dense_1")
    graph.layers.append(Layer(index=2, name="flat", op=Move(kind="reshape"), inputs=("dense_1",), outputs=("flat",)))
    graph.outputs = ["flat"]
    entry = made(graph=graph).plan.layers[2]
    assert (entry.kernel, entry.steps) == ("alias", ())


def test_a_constant_that_does_not_fit_its_buffer_is_an_error_of_the_kernel() -> None:
    class Wrong(MiniGemm):
        def pack(self, view: Any, params: Any) -> dict[str, np.ndarray]:
            packed = dict(super().pack(view, params))
            return {**packed, "bias": packed["bias"].astype(np.int16)}

    with pytest.raises(RuntimeError, match=r"kernel mini.gemm, layer 0 \(dense_0\): constant bias is int16\[6\]"):
        made(kernels=[Wrong()])


def test_rules_that_decide_for_no_layer_are_reported() -> None:
    rules = [
        {"match": {"op": "fully_connected"}, "kernel": "mini.gemm"},
        {"match": {"name": "dense_0"}, "kernel": "mini.plain"},
        {"match": {"op": "conv2d", "name": "nothing*"}, "kernel": "mini.gemm"},
    ]
    plan = made(rules=rules).plan
    assert plan.unused_rules == (2, 3)
    assert plan.warnings == (
        "tensorize rule 2 ({name: dense_0} -> mini.plain) decides nothing: an earlier rule matches all of its layers",
        "tensorize rule 3 ({op: conv2d, name: nothing*} -> mini.gemm) matches no layer",
    )
    assert made().plan.warnings == ()


def test_options_of_earlier_versions_are_reported_as_ignored() -> None:
    ignored = _ignored(TensorizeConfig.model_validate({"measure": "close", "tuning": False}))
    assert ignored == [
        "tensorize.tuning is ignored: kernels are counted in every run",
        "tensorize.measure is ignored: kernels are counted in every run",
    ]
    assert _ignored(TensorizeConfig()) == []
