"""Networks that came as ONNX, through all stages: the firmware is what ONNX Runtime says."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

from stages.base import StageError
from stages.ir.models.spec import FileModel
from tests.support.emitted import target_named
from tests.support.onnx_graphs import drawn, model
from tests.support.stages_run import run_stages, verified

SIMULATED = {"inputs": {"random": 4, "seed": 1}}


def digits(name: str, folder: Path, **configs: Any) -> dict[str, Any]:
    """What verify says of a network of recipes/onnx."""
    model = FileModel(file=f"recipes/onnx/{name}.onnx", layout="nhwc")
    return verified(model, "rv32-scalar", folder, {"simulate": SIMULATED, **configs})


def test_qlinear_operators_are_exact(tmp_path: Path) -> None:
    found = digits("digits_qlinear", tmp_path)
    assert found["float"]["max_relative"] == found["float"]["layers_max_relative"] == 0
    assert found["layers_checked"] == 10
    assert found["near_ties"] is None
    assert found["reference"].startswith("ONNX Runtime ")


def test_layers_between_integers_are_exact_but_for_near_ties(tmp_path: Path) -> None:
    found = digits("digits_qdq", tmp_path, quantize={"rounding": "twice"})
    ties = found["near_ties"]
    assert 0 < ties["differing"] < ties["near"] < ties["values"] / 100
    assert found["reference"].endswith("layer by layer")
    assert 0 < found["distance"]["layers"]["share"] < 0.05


def test_a_layer_that_is_no_near_tie_fails_the_network(tmp_path: Path) -> None:
    """A bias that is off in the firmware and in the integer graph."""

    def spoil(folder: Path) -> None:
        constants = dict(np.load(folder / "constants.npz"))
        name = next(name for name in constants if name.endswith("bias"))
        constants[name] = constants[name] + 400
        np.savez(folder / "constants.npz", **constants)

    model = FileModel(file="recipes/onnx/digits_qdq.onnx", layout="nhwc")
    with pytest.raises(StageError, match="differ"):
        run_stages(
            model,
            target_named("rv32-scalar"),
            tmp_path,
            until="verify",
            configs={"simulate": SIMULATED},
            edit={"quantize": spoil},
        )


def test_attention_and_a_transposed_convolution_of_real_numbers(tmp_path: Path) -> None:
    """Products of two computed matrices, normalized before, and an image that is enlarged and cut."""
    nodes = [
        "c = Conv <pads=[1, 1, 1, 1]> (x, k)",
        "l = ConvTranspose <strides=[2, 2], pads=[1, 1, 1, 1], output_padding=[1, 1]> (c, u)",
        "r = Reshape (l, rows)  n = LayerNormalization (r, s)  t = Transpose <perm=[0, 2, 1]> (n)",
        "scores = MatMul (n, t)  shares = Softmax (scores)  a = MatMul (shares, n)",
        "y = ArgMax <axis=2, keepdims=0> (a)",
    ]
    constants = {
        "k": drawn(1, 4, 3, 3, 3),
        "u": drawn(2, 4, 2, 3, 3),
        "s": drawn(3, 32),
        "rows": np.array([1, -1, 32], np.int64),
    }
    net = model(nodes, {"x": (1, 3, 8, 8)}, ["a", "y"], constants, types={"y": 7})
    (tmp_path / "net.onnx").write_bytes(net.SerializeToString())
    model_file = FileModel(file=str(tmp_path / "net.onnx"))
    found = verified(model_file, "rv64-scalar", tmp_path, {"simulate": SIMULATED})
    assert found["mismatches"] == 0 and found["layers_checked"] >= 7
    assert 0 < found["float"]["max_relative"] < 1e-5
