"""The stage as a whole: artifact, digests, descriptions, and real models."""

import hashlib
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stages.backends.targets.load import load_target
from stages.base import Job, StageError
from stages.import_model import STAGE
from stages.import_model.model_files import model_files
from stages.import_model.stage import ImportConfig
from stages.ir.models.builder import ModelBuilder
from stages.ir.models.spec import FileModel
from stages.ir.relax_module import load_module, operator_calls
from tests.support.malformed import altered, conv
from tests.support.shared_models import shared_models

ROOT = Path(__file__).parents[3]


def import_file(path: Path, out: Path) -> Path:
    out.mkdir(exist_ok=True)
    source = FileModel(file=str(path))
    files = model_files(source, ROOT)
    STAGE.run(Job(ImportConfig(), source, load_target("host"), {}, out, files=files))
    return out


def small_model() -> ModelBuilder:
    b = ModelBuilder()
    x = b.input("image", (1, 6, 6, 2), "int8", 0.05, -3)
    kernel = np.arange(-36, 36, dtype=np.int8).reshape(4, 3, 3, 2)
    scales = [0.1, 0.2, 0.3, 0.7]
    y = b.conv2d(x, kernel, np.zeros(4, np.int32), weight_scale=scales, stride=(2, 2), activation="relu", out=(0.3, 7))
    b.output(b.fully_connected(y, np.ones((5, 36), np.int8), weight_scale=0.1, out=(0.9, 1)))
    return b


@pytest.fixture
def model_file(tmp_path: Path) -> Path:
    path = tmp_path / "small.tflite"
    path.write_bytes(small_model().build())
    return path


def test_artifact(model_file: Path, tmp_path: Path) -> None:
    out = import_file(model_file, tmp_path / "out")
    assert sorted(path.name for path in out.iterdir()) == ["import.json", "model.tflite", "module.json", "tensors.json"]
    assert (out / "model.tflite").read_bytes() == model_file.read_bytes()
    digest = hashlib.sha256(model_file.read_bytes()).hexdigest()
    # 3x3 windows of 2 channels for 3x3x4 outputs, then 5 rows of 36.
    assert json.loads((out / "import.json").read_text()) == {
        "name": "small", "sha256": digest, "bytes": model_file.stat().st_size, "operators": 2,
        "macs": 3 * 3 * 4 * 18 + 5 * 36, "signature": None, "warnings": [],
    }  # fmt: skip
    assert [call.op for call in operator_calls(load_module(out))] == ["CONV_2D", "FULLY_CONNECTED"]


def test_tensors_json_says_what_litert_says(model_file: Path, tmp_path: Path) -> None:
    from ai_edge_litert.interpreter import Interpreter

    described = json.loads((import_file(model_file, tmp_path / "out") / "tensors.json").read_text())
    interpreter = Interpreter(str(model_file))
    for detail in interpreter.get_tensor_details():
        tensor = described["tensors"][detail["index"]]
        assert (tensor["name"], tensor["shape"]) == (detail["name"], detail["shape"].tolist())
        assert np.dtype(tensor["dtype"]) == detail["dtype"]
        quantization = detail["quantization_parameters"]
        np.testing.assert_array_equal(np.array(tensor["scales"], np.float32), quantization["scales"])
        np.testing.assert_array_equal(np.array(tensor["zero_points"], np.int64), quantization["zero_points"])
        many = len(tensor["scales"]) > 1
        assert tensor["axis"] == (quantization["quantized_dimension"] if many else None)
    assert described["inputs"] == [detail["index"] for detail in interpreter.get_input_details()]
    assert described["outputs"] == [detail["index"] for detail in interpreter.get_output_details()]
    options = described["operators"][0]["options"]
    assert (options["strideH"], options["padding"], options["fusedActivationFunction"]) == (2, "SAME", "RELU")
    # One line for each tensor and operator, so that a diff of two artifacts can be read.
    lines = (tmp_path / "out" / "tensors.json").read_text().splitlines()
    assert sum(line.startswith("  {") for line in lines) == len(described["tensors"]) + 2


def test_same_model_gives_the_same_bytes_in_another_process(model_file: Path, tmp_path: Path) -> None:
    """String hashing differs from process to process; nothing of it may reach an artifact."""
    script = (
        "import sys; from pathlib import Path; "
        "from tests.unit.import_model.test_import_stage import import_file; "
        "import_file(Path(sys.argv[1]), Path(sys.argv[2]))"
    )
    outs = [tmp_path / name for name in ("a", "b")]
    for seed, out in enumerate(outs):
        subprocess.run(
            [sys.executable, "-c", script, str(model_file), str(out)],
            check=True, cwd=ROOT, env={"PYTHONHASHSEED": str(seed), "PATH": ""},
        )  # fmt: skip
    for path in outs[0].iterdir():
        assert path.read_bytes() == (outs[1] / path.name).read_bytes(), path.name


def test_every_real_model_is_imported(tmp_path: Path) -> None:
    """Hosted, float, MLPerf Tiny, single operators; those named bad_* are sound for LiteRT, and so for us."""
    for number, path in enumerate(shared_models("**/*.tflite")):
        out = import_file(path, tmp_path / str(number))
        described = json.loads((out / "tensors.json").read_text())
        calls = list(operator_calls(load_module(out)))
        assert [call.op for call in calls] == [operator["op"] for operator in described["operators"]], path.name
        assert [call.outputs for call in calls] == [tuple(op["outputs"]) for op in described["operators"]], path.name


def test_an_unknown_signature_is_refused_before_anything_runs_at_its_place(tmp_path: Path) -> None:
    from pipeline.api import run_recipe
    from pipeline.errors import StageFailed
    from tests.support.edited_models import together

    (tmp_path / "net.tflite").write_bytes(together(small_model().build(), signatures={"serving_default": 0}))
    recipe = {
        "schema": 1, "name": "signed", "target": "host",
        "model": {"file": str(tmp_path / "net.tflite"), "signature": "serving"},
    }  # fmt: skip
    path = tmp_path / "signed.yaml"
    path.write_text(json.dumps(recipe, indent=1))
    with pytest.raises(StageFailed, match=r"has no signature 'serving'; did you mean 'serving_default'\?") as caught:
        run_recipe(path, store=tmp_path / "store", build=tmp_path / "build")
    assert re.match(r".*signed\.yaml:7:\d+: import: ", str(caught.value))
    assert not list((tmp_path / "store").rglob("manifest.json"))


def test_what_is_wrong_with_a_model_of_one_operator_is_wrong_in_the_recipe(tmp_path: Path) -> None:
    from pipeline.api import run_recipe
    from pipeline.errors import StageFailed

    path = tmp_path / "pool.yaml"
    model = "{op: max_pool2d, shape: [8, 8, 3], kernel: [1073741824, 1]}"
    path.write_text(f"schema: 1\nname: pool\ntarget: host\nmodel: {model}\n")
    message = r"pool\.yaml:4:\d+: import: model op 'max_pool2d': MAX_POOL_2D has a window of 1073741824x1"
    with pytest.raises(StageFailed, match=message):
        run_recipe(path, store=tmp_path / "store", build=tmp_path / "build")


def test_options_that_point_nowhere_are_refused_and_not_described(tmp_path: Path) -> None:
    """Lists of an operator that nobody reads but the description."""

    def ragged(model: Any, graph: Any) -> None:
        graph.operators[0].intermediates = np.array([1234567, 7], np.int32)

    data = altered(conv("float32"), ragged)
    at = data.index(np.array([2, 1234567], "<i4").tobytes())
    path = tmp_path / "ragged.tflite"
    path.write_bytes(data[:at] + b"\xff\xff\xff\x3f" + data[at + 4 :])
    with pytest.raises(StageError, match="a list in operator 0 ends beyond the file"):
        import_file(path, tmp_path / "out")
