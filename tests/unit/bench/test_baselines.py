"""Counting a peer's functions, held against a stand-in for its library that lies in tests/support/peer."""

from pathlib import Path
from typing import Any

import pytest

from pipeline.commands.bench.command import bench
from pipeline.commands.bench.layer_figures import read_rows
from pipeline.errors import PipelineError
from stages.delivery.bench.baselines import BASELINES
from stages.delivery.bench.baselines.count import count_baseline
from stages.delivery.bench.networks import Network
from stages.ir.models.spec import OpModel
from stages.layout.rules import LayoutConfig
from stages.tensorize import TensorizeConfig
from tests.support.bench_options import BENCH_OPTIONS
from tests.support.emitted import target_named

ROOT = Path(__file__).resolve().parents[3]
STANDIN = ROOT / "tests/support/peer"
PEER = BASELINES["cmsis-nn"]
M4 = target_named("cortex-m4")


def network(name: str, **model: Any) -> Network:
    return Network.of(name, OpModel.model_validate(model), LayoutConfig(), TensorizeConfig())


def test_functions_are_counted_and_compared() -> None:
    networks = [
        network("strided", op="conv2d", shape=(9, 7, 5), out_channels=6, kernel=(3, 2), stride=(2, 1)),
        network("relu6", op="conv2d", shape=(5, 5, 8), out_channels=3, activation="relu6"),
        network("gate", op="mul", shape=(4, 4, 12), other_shape=(1, 1, 12)),
        network("const", op="mul", shape=(4, 4, 12), other_shape=(1, 1, 12), constant=True),
        network("pixels", op="mul", shape=(4, 4, 12), other_shape=(4, 4, 1)),
        network("pool", op="max_pool2d", shape=(7, 7, 6), kernel=(3, 3), stride=(2, 2)),
        network("pad", op="pad", shape=(4, 4, 3), pads=((0, 0), (1, 0), (0, 1), (0, 0))),
        network("wide", op="mul", shape=(4, 4, 12), other_shape=(1, 1, 12), dtype="int16"),
        network("larger", op="maximum", shape=(4, 4, 12), other_shape=(1, 1, 12)),
        network("unsigned", op="max_pool2d", shape=(7, 7, 6), kernel=(3, 3), dtype="uint8"),
        network("lacking", op="softmax", shape=(10,)),  # CMSIS-NN has it, this checkout does not
    ]
    found = {one.network.name: one for one in count_baseline(PEER, STANDIN, networks, M4)}
    # Of the others it has no function.
    assert [*found] == ["strided", "relu6", "gate", "const", "pool", "pad", "wide", "larger"]
    assert all(one.differing == 0 and one.instructions > one.outputs for one in found.values() if one != found["pad"])
    pad = found["pad"]
    assert (pad.outputs, pad.differing, pad.largest) == (75, 27, 40)


def test_a_fully_connected_layer_is_called_as_the_version_has_it() -> None:
    """From version 6 on with a scale for each channel; before that with one, and not where channels differ."""
    one = network("layer", op="fully_connected", shape=(16,), out_channels=3)
    newer, older = PEER.calls(one)
    assert {"arm_fully_connected_wrapper_s8", "arm_vector_sum_s8"} < newer.functions("arm_")
    assert any(line.endswith("(int32_t *)shift, 0};") for line in newer.before)
    assert older.functions("arm_") == {"arm_fully_connected_s8", "arm_fully_connected_s8_get_buffer_size"}
    view = one.graph.view(one.graph.layers[0])
    view.constant("multiplier")[1] -= 1
    (only,) = PEER.calls(one)
    assert any(line.endswith("(int32_t *)shift, 1};") for line in only.before)
    assert "arm_fully_connected_wrapper_s8" in only.functions("arm_")


def test_the_command_shows_ratios(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = tmp_path / "figures.json"
    asked = {"peer": f"cmsis-nn={STANDIN}", "only": "pooling/lenet_max_2x2,movement/pad_causal"}
    options = {**BENCH_OPTIONS, **asked, "targets": "cortex-m4,rv64-rvp", "json": str(made)}
    assert bench(options, root=ROOT, suite_name="layers") == 0
    rows = read_rows(made)
    assert [*rows["pooling/lenet_max_2x2"].figures["cortex-m4"].peers] == ["cmsis-nn (header 11.2.0)"]
    assert not rows["pooling/lenet_max_2x2"].figures["rv64-rvp"].peers
    shown = capsys.readouterr().out
    assert "movement/pad_causal on cortex-m4: cmsis-nn differs from LiteRT in" in shown and "; skipped" in shown
    assert not rows["movement/pad_causal"].figures["cortex-m4"].peers
    assert "cmsis-nn (header 11.2.0) ÷ ours on cortex-m4: 1 layer," in shown


@pytest.mark.parametrize(
    ("asked", "says", "hint"),
    [
        ({"peer": "cmsis-nn"}, r"peer=cmsis-nn: expected NAME=PATH", ""),
        ({"peer": "cmsis=x"}, r"peer=: unknown peer 'cmsis'; did you mean 'cmsis-nn'\?", ""),
        ({"peer": "cmsis-nn=/nowhere"}, r"peer=cmsis-nn: /nowhere does not exist", ""),
        ({"peer": f"cmsis-nn={ROOT}/README.md"}, r"peer=cmsis-nn: .*README.md is not a folder", ""),
        ({"peer": f"cmsis-nn={STANDIN.parent}"}, "no Include/arm_nnfunctions", f"did you mean {STANDIN}?"),
        (
            {"peer": f"cmsis-nn={STANDIN}", "targets": "rv64-rvp"},
            "peer=cmsis-nn: no functions for rv64-rvp",
            "target=cortex-m4,cortex-m55",
        ),
    ],
)
def test_wrong_peers(asked: dict[str, str], says: str, hint: str) -> None:
    with pytest.raises(PipelineError, match=says) as raised:
        bench({**BENCH_OPTIONS, "only": "pooling/*", **asked}, root=ROOT, suite_name="layers")
    assert not hint or raised.value.hint == hint


def test_peers_go_with_layers() -> None:
    with pytest.raises(PipelineError, match="peer= needs suite=layers or suite=silicon"):
        bench({**BENCH_OPTIONS, "peer": f"cmsis-nn={STANDIN}"}, root=ROOT)


@pytest.mark.parametrize(
    ("model", "functions"),
    [
        ({"op": "conv2d", "shape": (5, 5, 8), "out_channels": 4, "dtype": "int16"}, "convolve_wrapper_s16"),
        ({"op": "conv2d", "shape": (5, 5, 8), "out_channels": 4, "weights": "int4"}, "convolve_wrapper_s4"),
        ({"op": "depthwise_conv2d", "shape": (5, 5, 8), "weights": "int4"}, "depthwise_conv_wrapper_s4"),
        ({"op": "fully_connected", "shape": (8,), "out_channels": 4, "weights": "int4"}, "fully_connected_s4"),
        ({"op": "fully_connected", "shape": (8,), "out_channels": 4, "dtype": "int16"}, "fully_connected_s16"),
        (
            {"op": "transpose_conv", "shape": (4, 4, 8), "out_channels": 4, "kernel": (3, 3), "stride": (2, 2)},
            "transpose_conv_wrapper_s8",
        ),
        ({"op": "batch_matmul", "shape": (2, 4, 8), "other_shape": (2, 8, 4)}, "batch_matmul_s8"),
        ({"op": "batch_matmul", "shape": (2, 4, 8), "other_shape": (2, 8, 4), "dtype": "int16"}, "batch_matmul_s16"),
        ({"op": "svdf", "shape": (8,), "out_channels": 4, "rank": 2}, "svdf_state_s16_s8"),
        ({"op": "lstm", "shape": (3, 8), "out_channels": 4}, "lstm_unidirectional_s8"),
    ],
)
def test_the_call_matches_the_types(model: dict[str, Any], functions: str) -> None:
    """Layers on int4 call functions on int4, never those on int8."""
    (call,) = PEER.calls(network("layer", **model))
    assert call.counted.startswith(f"status = arm_{functions}(")
    assert "_s8" in functions or not any("_s8" in name for name in call.functions("arm_"))


def test_prepared_operands() -> None:
    """Weights of four bits are packed, and the second matrix is transposed."""
    narrow = network("layer", op="fully_connected", shape=(8,), out_channels=4, weights="int4")
    assert PEER.calls(narrow)[0].data["weights"].size == 16
    product = network("layer", op="batch_matmul", shape=(2, 4, 8), other_shape=(2, 8, 3))
    assert PEER.calls(product)[0].data["x1"].shape == (1, 2, 3, 8)
