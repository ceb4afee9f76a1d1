"""The verify stage on artifacts made by hand: LiteRT's own results pass, and one altered byte is found where it is."""

import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stages.base import Job, StageError
from stages.ir.models.builder import ModelBuilder
from stages.ir.models.spec import FileModel
from stages.ir.reference.interpreter import Reference, random_inputs
from stages.verify import STAGE, child
from stages.verify.compare import difference
from stages.verify.stage import VerifyConfig
from tests.support.emitted import target_named

INFERENCES = 3
TO_NCHW = (0, 3, 1, 2)


def network(dtype: str) -> bytes:
    """conv2d -> max_pool2d -> reshape -> fully_connected."""
    rng = np.random.default_rng(5)
    quantized = dtype != "float32"
    kernel, dense = rng.normal(0, 40, (8, 3, 3, 3)), rng.normal(0, 40, (5, 128))
    if quantized:
        kernel, dense = (np.clip(w.round(), -127, 127).astype(np.int8) for w in (kernel, dense))
    else:
        kernel, dense = kernel.astype(np.float32), dense.astype(np.float32)
    builder = ModelBuilder()
    x = builder.input("x", (1, 8, 8, 3), dtype, *((0.02, 3) if quantized else ()))
    bias = np.zeros(8, dtype=np.int32 if quantized else np.float32)
    scale = {"weight_scale": 0.01} if quantized else {}
    y = builder.conv2d(x, kernel, bias, **scale, out=(0.1, -5) if quantized else None)
    y = builder.max_pool2d(y, (2, 2), (2, 2), name="pool")
    y = builder.reshape(y, (1, -1))
    builder.output(builder.fully_connected(y, dense, **scale, out=(0.2, 0) if quantized else None, name="dense"))
    return builder.build()


class Firmware:
    """What emit and simulate would leave for `model`; arrays may be altered before `verify` reads them.

    traces: by inference, then tensor name, physical order; the pool's is planar.
    """

    def __init__(self, folder: Path, model: bytes, labels: list[int | None] | None = None) -> None:
        self.folder, self.model, self.labels = folder, model, labels
        self.reference = Reference(model)
        self.inputs = [random_inputs(self.reference.info, seed) for seed in range(INFERENCES)]
        self.outputs, self.traces = [], []
        self.layers = [operator for operator in self.reference.info.operators if operator.op != "RESHAPE"]
        for inputs in self.inputs:
            self.outputs.append([array.copy() for array in self.reference.run(inputs)])
            self.traces.append({self.name(op): self.physical(op) for op in self.layers})

    def name(self, operator: Any) -> str:
        return self.reference.info.tensors[operator.outputs[0]].name

    def physical(self, operator: Any) -> np.ndarray:
        array = self.reference.tensor(operator.outputs[0])
        return np.ascontiguousarray(array.transpose(TO_NCHW) if operator.op == "MAX_POOL_2D" else array)

    def verify(self, *, traced: bool = True, **config: float) -> dict[str, Any]:
        paths = {kind: self.folder / kind for kind in ("import", "quantize", "emit", "simulate", "verify")}
        for path in paths.values():
            path.mkdir(exist_ok=True)
        (paths["import"] / "model.tflite").write_bytes(self.model)
        info = self.reference.info

        def port(tensor: Any) -> dict[str, Any]:
            return {"name": tensor.name, "dtype": tensor.dtype, "shape": list(tensor.shape)}

        traces = [
            {
                "layer": op.index,
                "tensor": self.name(op),
                "tflite_index": op.outputs[0],
                "dtype": info.tensors[op.outputs[0]].dtype,
                "shape": list(info.tensors[op.outputs[0]].shape),
                "layout": "NCHW" if op.op == "MAX_POOL_2D" else "",
            }
            for op in self.layers
        ]
        # A layer whose tensor the imported file does not have: its bytes are skipped.
        traces.insert(1, {**traces[0], "tensor": "scratch", "tflite_index": None, "dtype": "uint8", "shape": [3]})
        description = {
            "name": "net",
            "inputs": [port(tensor) for tensor in self.reference.inputs],
            "outputs": [port(tensor) for tensor in self.reference.outputs],
            "layers": [
                {"index": op.index, "name": self.name(op), "op": op.op.lower(), "kernel": "generic.some"}
                for op in self.layers
            ],
            "traces": traces,
        }
        (paths["emit"] / "model.json").write_text(json.dumps(description))
        simulated = paths["simulate"]
        header = struct.pack("<4IQ", 0x4E494C46, INFERENCES, 1, 0, 0)
        (simulated / "inputs.bin").write_bytes(header + b"".join(a.tobytes() for row in self.inputs for a in row))
        (simulated / "outputs.bin").write_bytes(b"".join(a.tobytes() for row in self.outputs for a in row))
        rows = [[*list(row.values())[:1], np.zeros(3, np.uint8), *list(row.values())[1:]] for row in self.traces]
        (simulated / "trace.bin").write_bytes(b"".join(a.tobytes() for row in rows for a in row if traced))
        names = [f"random {i}" for i in range(INFERENCES)]
        (simulated / "inputs.json").write_text(json.dumps({"names": names, "labels": self.labels}))
        STAGE.run(
            Job(
                config=VerifyConfig(**config),
                model=FileModel(file="net.tflite"),
                target=target_named("host"),
                inputs={kind: paths[kind] for kind in STAGE.consumes},
                out=paths["verify"],
            )
        )
        found: dict[str, Any] = json.loads((paths["verify"] / "verify.json").read_text())
        return found


@pytest.fixture
def in_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Check in this process. A child takes a second, and is for jobs on which LiteRT aborts."""

    def run(job: dict[str, Any], progress: Callable[[int], None]) -> dict[str, Any]:
        messages: list[dict[str, Any]] = []
        child.check_job(job, lambda **message: messages.append(message))
        return messages[-1]

    monkeypatch.setattr(child, "_run_child", run)


@pytest.fixture
def firmware(tmp_path: Path) -> Callable[..., Firmware]:
    return lambda dtype="int8", **options: Firmware(tmp_path, network(dtype), **options)


def test_litert_itself_passes(firmware: Callable[..., Firmware]) -> None:
    found = firmware().verify()
    assert found["reference"].startswith("LiteRT ") and found["reference"].endswith(" BUILTIN_REF")
    assert (found["inputs"], found["outputs_checked"], found["mismatches"]) == (INFERENCES, 5 * INFERENCES, 0)
    assert found["layers_checked"] == 3
    assert found["first_mismatch"] is None and found["accuracy"] is None and found["float"] is None


@pytest.mark.usefixtures("in_process")
def test_the_first_layer_that_differs_is_named(firmware: Callable[..., Firmware]) -> None:
    made = firmware()
    pool = made.traces[1]["pool"]  # planar: channel 2, row 1, column 3
    expected = int(pool[0, 2, 1, 3])
    pool[0, 2, 1, 3] = expected - 3 if expected > 0 else expected + 3
    made.traces[1]["dense"][0, 4] ^= 1
    made.outputs[1][0][0, 4] ^= 1
    with pytest.raises(StageError) as error:
        made.verify()
    lines = str(error.value).splitlines()
    assert lines[0].startswith("1 of 15 output values differ from LiteRT")
    assert lines[1] == "the first that differs is layer 1 (max_pool_2d) 'pool', on random 1:"
    assert lines[2] == "  1 of 128 elements, by at most 3, 3 on average"
    assert lines[3] == f"  element [0, 1, 3, 2] is {int(pool[0, 2, 1, 3])}, expected {expected}"
    assert lines[4] == "Its kernel is generic.some."


@pytest.mark.usefixtures("in_process")
def test_a_layer_that_differs_fails_though_the_outputs_agree(firmware: Callable[..., Firmware]) -> None:
    made = firmware()
    made.traces[0]["conv2d"][0, 7, 7, 7] ^= 4
    with pytest.raises(StageError, match=r"outputs equal LiteRT .*, but a layer differs"):
        made.verify()


@pytest.mark.usefixtures("in_process")
def test_without_traces_the_output_is_named(firmware: Callable[..., Firmware]) -> None:
    made = firmware()
    assert made.verify(traced=False)["layers_checked"] == 0
    made.outputs[2][0][0, 1] ^= 1
    with pytest.raises(StageError, match="output 'dense', on random 2"):
        made.verify(traced=False)


@pytest.mark.usefixtures("in_process")
def test_float_outputs_have_a_tolerance(firmware: Callable[..., Firmware]) -> None:
    made = firmware("float32")
    largest = np.abs(made.outputs[0][0]).max()
    made.outputs[0][0][0, 0] += np.float32(5e-5) * largest
    found = made.verify()
    assert found["float"]["tolerance"] == 1e-4
    assert found["float"]["max_relative"] == pytest.approx(5e-5, rel=0.01)
    with pytest.raises(StageError, match="of the largest magnitude, allowed 1e-05"):
        made.verify(tolerance=1e-5)


@pytest.mark.usefixtures("in_process")
def test_a_float_output_that_is_not_a_number_fails(firmware: Callable[..., Firmware]) -> None:
    made = firmware("float32")
    made.outputs[1][0][0, 3] = np.nan
    with pytest.raises(StageError, match="by at most inf"):
        made.verify()


def overflowing(folder: Path) -> Firmware:
    """Two products of weights near 1e30: the second leaves float32, but for inputs of 0."""
    builder = ModelBuilder()
    x = builder.input("x", (1, 4), "float32")
    large = np.array([[1e30, -1e30, 3e29, 0]] * 4, np.float32)
    y = builder.fully_connected(x, large, name="large")
    builder.output(builder.fully_connected(y, large, name="larger", activation="relu"))
    return Firmware(folder, builder.build())


@pytest.mark.usefixtures("in_process")
def test_what_differs_after_litert_overflowed_is_left_out_and_named(tmp_path: Path) -> None:
    made = overflowing(tmp_path)
    made.inputs[1] = [np.zeros((1, 4), np.float32)]
    made.outputs[1] = [array.copy() for array in made.reference.run(made.inputs[1])]
    made.traces[1] = {made.name(op): made.physical(op) for op in made.layers}
    assert made.verify()["overflowed"] == {}
    made.outputs[0][0][0, 0] = 7
    result = made.verify()
    assert result["overflowed"] == {"random 0": "larger"}
    assert (result["inputs"], result["outputs_checked"], result["float"]["max_relative"]) == (2, 8, 0)
    made.outputs[1][0][0, 0] = 7
    with pytest.raises(StageError, match="'larger', on random 1"):
        made.verify()


def rounding(folder: Path, scale: float = 0.05) -> Firmware:
    """A float layer, its numbers as integers, and two integer layers behind."""
    b, rng = ModelBuilder(), np.random.default_rng(2)
    y = b.fully_connected(b.input("x", (1, 4), "float32"), rng.normal(0, 1, (6, 4)).astype("f"), name="floats")
    y = b.relu(b.quantize(y, "int8", (scale, 3), name="rounded"), name="behind")
    dense = rng.integers(-99, 99, (3, 6)).astype(np.int8)
    b.output(b.fully_connected(y, dense, weight_scale=0.01, out=(0.1, 0), name="last"))
    return Firmware(folder, b.build())


def tie(made: Firmware, inference: int, by: float = 1e-5, step: int = 1) -> None:
    """Lets the float that is nearest to a half be another by a share `by` of the largest, and what follows from it."""
    (floats, rounded) = made.traces[inference]["floats"], made.traces[inference]["rounded"]
    near = int(np.argmin(np.abs(np.abs(floats / np.float32(0.05)) % 1 - 0.5)))
    floats.flat[near] += np.float32(by) * np.abs(floats).max()
    rounded.flat[near] += step
    made.traces[inference]["behind"].flat[near] += step
    made.outputs[inference][0].flat[0] += 1
    made.traces[inference]["last"] = made.outputs[inference][0].copy()


@pytest.mark.usefixtures("in_process")
def test_a_tie_behind_a_float_layer_is_named_and_what_lies_behind_left_out(tmp_path: Path) -> None:
    made = rounding(tmp_path)
    assert made.verify()["tied"] == {}
    tie(made, 1)
    result = made.verify(tolerance=0.01)
    assert (result["tied"], result["inputs"], result["outputs_checked"]) == ({"random 1": "rounded"}, 2, 6)
    with pytest.raises(StageError, match="may be a near tie in QUANTIZE") as caught:
        made.verify(traced=False, tolerance=0.01)
    assert "output 'last', on random 1" in str(caught.value) + caught.value.message


FAULTS: dict[str, Callable[[Firmware], None]] = {
    "two steps": lambda made: tie(made, 1, step=2),
    "the same float": lambda made: tie(made, 1, by=0),
    "another element": lambda made: made.traces[1]["rounded"].__iadd__(1),
}


@pytest.mark.usefixtures("in_process")
@pytest.mark.parametrize("fault", FAULTS)
def test_what_is_no_tie_fails(tmp_path: Path, fault: str) -> None:
    made = rounding(tmp_path)
    FAULTS[fault](made)
    with pytest.raises(StageError, match="'rounded', on random 1"):
        made.verify(tolerance=0.01)


@pytest.mark.usefixtures("in_process")
def test_nothing_is_verified_where_litert_overflows_on_all_inputs(tmp_path: Path) -> None:
    made = overflowing(tmp_path)
    for row in made.outputs:
        row[0][0, 0] = 7
    with pytest.raises(StageError) as caught:
        made.verify()
    lines = str(caught.value).splitlines()
    assert lines[0] == "LiteRT overflows float32 on every input, first in 'larger' on random 0"
    assert len(lines) <= 5


@pytest.mark.usefixtures("in_process")
def test_accuracy_is_counted_image_by_image(firmware: Callable[..., Firmware]) -> None:
    made = firmware()
    classes = [int(np.argmax(row[0])) for row in made.outputs]
    made.labels = [classes[0], (classes[1] + 1) % 5, None]
    assert made.verify()["accuracy"] == {"images": 2, "ours": 0.5, "litert": 0.5, "agree": 1.0}


def softmax_of_600(folder: Path) -> Firmware:
    """On 600 equal values the exponentials sum to 600, for which LiteRT's reference SOFTMAX aborts."""
    builder = ModelBuilder()
    x = builder.input("x", (1, 600), "int8", 0.1, 0)
    builder.output(builder.softmax(x))
    return Firmware(folder, builder.build())


def test_inference_on_which_litert_ends_the_process_is_left_out_and_named(tmp_path: Path) -> None:
    made = softmax_of_600(tmp_path)
    made.inputs = [made.inputs[0], [np.zeros((1, 600), np.int8)], made.inputs[2]]
    result = made.verify()
    assert result["without_reference"] == ["random 1"]
    assert result["inputs"] == 2
    assert result["outputs_checked"] == 2 * 600


def test_no_input_that_litert_can_compute_is_an_error(tmp_path: Path) -> None:
    made = softmax_of_600(tmp_path)
    made.inputs = [[np.zeros((1, 600), np.int8)] for _ in made.inputs]
    with pytest.raises(StageError) as caught:
        made.verify()
    assert str(caught.value).splitlines() == [
        "LiteRT aborted with SIGABRT on every input",
        "in operator 0 (SOFTMAX) 'x' -> 'softmax'",
        "LiteRT's reference SOFTMAX aborts on 512 or more nearly equal values.",
    ]


def test_a_model_on_which_litert_ends_is_explained_by_its_operator(tmp_path: Path) -> None:
    """An ADD whose scales lie too far apart; no SOFTMAX is blamed."""
    made = Firmware(tmp_path, network("int8"))
    builder = ModelBuilder()
    x = builder.input("x", (1, 8, 8, 3), "int8", 1e6, 0)
    builder.output(builder.add(x, x, out=(1e-6, 0)))
    made.model = builder.build()
    with pytest.raises(StageError) as caught:
        made.verify()
    assert str(caught.value).splitlines() == [
        "LiteRT aborted with SIGABRT while it loaded the model",
        "in operator 0 (ADD) 'x', 'x' -> 'add'",
    ]


def test_equal_nans_are_equal_and_infinities_are_far() -> None:
    nan, inf = np.float32("nan"), np.float32("inf")
    assert difference(np.array([nan, inf], np.float32), np.array([nan, inf], np.float32)) is None
    found = difference(np.array([inf], np.float32), np.array([-inf], np.float32))
    assert found is not None and found.relative == np.inf
