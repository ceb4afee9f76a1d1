"""Chains with parts from ONNX: each is verified by ONNX Runtime, the parts from TFLite by LiteRT."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

from pydantic import TypeAdapter

from pipeline.recipes.model_entry import model_entry
from stages.base import StageError
from stages.ir.reference.onnx_runtime import imported_reference
from stages.ir.reference.partitions import reference_of
from tests.support.emitted import target_named
from tests.support.onnx_graphs import drawn, model, node
from tests.support.stages_run import run_stages, verified
from tests.unit.import_model.test_chain import decoder, encoder

UNITS = 8


def coder(kind: str = "int8", x: tuple[float, int] = (0.05, -3), y: tuple[float, int] = (0.05, -3)) -> Any:
    """A convolution between integers, [1, 3, 4, 4] `q` to `y`, and its sigmoids `p`."""
    dtype, code, added = (np.int8, 3, 0) if kind == "int8" else (np.uint8, 2, 128)
    constants = {f"{name}_s": np.float32(scale) for name, (scale, _) in (("q", x), ("y", y))}
    constants |= {f"{name}_z": dtype(zero + added) for name, (_, zero) in (("q", x), ("y", y))}
    weights = np.random.default_rng(3).integers(-127, 128, (3, 3, 3, 3)).astype(np.int8)
    constants |= {"w": weights, "w_s": np.float32(0.01), "w_z": np.int8(0)}
    nodes = [
        "x = DequantizeLinear (q, q_s, q_z)  weights = DequantizeLinear (w, w_s, w_z)",
        "sums = Conv <pads=[1, 1, 1, 1]> (x, weights)  y = QuantizeLinear (sums, y_s, y_z)",
        "real = DequantizeLinear (y, y_s, y_z)  p = Sigmoid (real)",
    ]
    return model(nodes, {"q": (1, 3, 4, 4)}, ["y", "p"], constants, types={"q": code, "y": code})


def listener() -> Any:
    """A product of integers and a GRU with a state: `f` [1, 48] and `h` to `score` and `hn`."""
    rng = np.random.default_rng(0)
    constants = {
        "s": np.float32(0.05),
        "z": np.int8(0),
        "ys": np.float32(0.04),
        "yz": np.int8(2),
        "ws": np.float32(0.01),
        "w": rng.integers(-127, 128, (48, UNITS)).astype(np.int8),
        "W": drawn(1, 1, 3 * UNITS, UNITS),
        "R": drawn(2, 1, 3 * UNITS, UNITS),
        "B": drawn(3, 1, 6 * UNITS),
        "step": np.array([1, 1, UNITS]),
        "rows": np.array([1, UNITS]),
        "k": drawn(4, UNITS, 1),
    }
    nodes = [
        "q = QuantizeLinear (f, s, z)  x = DequantizeLinear (q, s, z)",
        "weights = DequantizeLinear (w, ws, z)  sums = MatMul (x, weights)",
        "y = QuantizeLinear (sums, ys, yz)  real = DequantizeLinear (y, ys, yz)",
        "steps = Reshape (real, step)",
        node("GRU", ["steps", "W", "R", "B", "", "h"], ["Y", "hn"], hidden_size=UNITS, linear_before_reset=1),
        "last = Reshape (hn, rows)  m = MatMul (last, k)  score = Sigmoid (m)",
    ]
    return model(nodes, {"f": (1, 48), "h": (1, 1, UNITS)}, ["score", "hn"], constants)


def chain(folder: Path, *parts: tuple[Any, dict[str, Any]] | dict[str, Any]) -> Any:
    """A chain of files (bytes or ONNX, with options) and other parts."""
    entries = []
    for at, part in enumerate(parts):
        if isinstance(part, tuple):
            suffix = "tflite" if isinstance(part[0], bytes) else "onnx"
            path = folder / f"net_{at}.{suffix}"
            path.write_bytes(part[0] if isinstance(part[0], bytes) else part[0].SerializeToString())
            part = {"file": str(path), **part[1]}
        entries.append(part)
    return TypeAdapter(model_entry({})).validate_python({"chain": entries})


def runtime(net: Any, **feeds: Any) -> list[Any]:
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    return list(ort.InferenceSession(net.SerializeToString(), options).run(None, feeds))


MIXED = (encoder(), {}), (coder(), {"layout": "nhwc"}), (decoder(), {"inputs": {"code_0": "y"}})


def test_the_reference_of_a_chain_is_its_parts_one_after_the_other(tmp_path: Path) -> None:
    made = run_stages(chain(tmp_path, *MIXED), target_named("host"), tmp_path / "run", until="import")
    reference = imported_reference(made["import"] / "model.tflite", "chain")
    assert [tensor.name for tensor in reference.outputs] == ["net_1/p", "net_2/softmax"]
    for seed in range(4):
        image = np.random.default_rng(seed).integers(-128, 128, (1, 4, 4, 2)).astype(np.int8)
        (code,) = reference_of(encoder()).run([image])
        y, p = runtime(coder(), q=code.transpose(0, 3, 1, 2))
        (scores,) = reference_of(decoder()).run([y.transpose(0, 2, 3, 1)])
        for ours, theirs in zip(reference.run([image]), (p.transpose(0, 2, 3, 1), scores), strict=True):
            np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("rounding", ["once", "twice"])
def test_parts_of_both_kinds_are_verified(tmp_path: Path, rounding: str) -> None:
    found = verified(chain(tmp_path, *MIXED), "rv32-scalar", tmp_path, {"quantize": {"rounding": rounding}})
    assert (found["mismatches"], found["tied"]) == (0, {})
    assert all(name in found["reference"] for name in ("LiteRT", "ONNX Runtime"))
    assert found["near_ties"]["layers"].keys() == {"net_1/y"}


def test_networks_from_onnx_follow_each_other(tmp_path: Path) -> None:
    """Connected by the names of ONNX, converted between int8 and uint8, and a float network after them."""
    parts = [
        (coder(), {}),
        (coder("uint8", (0.04, 5)), {"inputs": {"q": "y"}, "convert": True}),
        (listener(), {"inputs": {"f": "p"}, "states": {"hn": "h"}, "shapes": {"f": [1, 48]}}),
    ]
    with pytest.raises(StageError, match=r"net_1 writes \[1, 3, 4, 4\]; net_2 reads \[1, 48\]"):
        run_stages(chain(tmp_path, *parts), target_named("host"), tmp_path / "refused", until="import")
    found = verified(chain(tmp_path, *parts[:2]), "host", tmp_path)
    assert (found["mismatches"], found["inputs"], found["tied"]) == (0, 6, {})


@pytest.mark.parametrize("traces", [True, False])
def test_a_state_that_near_ties_change_is_followed(tmp_path: Path, traces: bool) -> None:
    """An integer that rounds differently changes the state, and all later runs."""
    parts = (listener(), {"states": {"hn": "h"}}), {"smooth": {"window": 3, "threshold": 0.5}}
    simulate = {"inputs": {"random": 2, "steps": 30}, "trace": traces}
    found = verified(chain(tmp_path, *parts), "host", tmp_path, {"simulate": simulate})
    assert (found["mismatches"], found["near_ties"]["differing"] > 0) == (0, True)
    assert "layer by layer" in found["reference"]


def test_a_wrong_layer_of_a_part_is_found(tmp_path: Path) -> None:
    def spoil(folder: Path) -> None:
        constants = dict(np.load(folder / "constants.npz"))
        (name,) = (name for name in constants if constants[name].shape[-1] == 3 and constants[name].ndim == 4)
        constants[name] = constants[name] // 2
        np.savez(folder / "constants.npz", **constants)

    parts = (coder(), {"layout": "nhwc"}), (decoder(), {"inputs": {"code_0": "y"}})
    with pytest.raises(StageError, match="net_0/y"):
        run_stages(
            chain(tmp_path, *parts), target_named("host"), tmp_path / "run", until="verify", edit={"quantize": spoil}
        )


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ([(encoder(), {}), (coder(), {})], r"net_0 writes \[1, 4, 4, 3\]; net_1 reads \[1, 3, 4, 4\]\n.*layout: nhwc"),
        ([(coder(), {}), (coder(), {})], "net_0 has 2 outputs, net_1 1 inputs\nConnect them by name: inputs: {q: y}"),
        ([(coder(), {}), (coder(), {"inputs": {"q": "sums"}})], "net_0 has no output 'sums'\nIt has y, p"),
        ([(coder(y=(0.1, 0)), {}), (coder(), {"inputs": {"q": "y"}})], "net_1 reads int8 of scale 0.05"),
    ],
)
def test_parts_that_do_not_fit_are_refused(tmp_path: Path, parts: Any, message: str) -> None:
    with pytest.raises(StageError, match=message) as refused:
        run_stages(chain(tmp_path, *parts), target_named("host"), tmp_path / "run", until="import")
    assert refused.value.at[:3] == ("model", "chain", 1)
