"""ONNX Runtime on the CPU, with its graph optimizations off: the oracle of networks that came as ONNX."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from stages.models.onnx_names import Traced, loaded
from stages.models.tflite_reader import ModelInfo, TensorInfo, read
from stages.reference.interpreter import Array
from stages.reference.refusal import RunError

if TYPE_CHECKING:
    import onnx

ONNX_FILE, NAMES = "model.onnx", "onnx.json"
"""In the artifact of import: the file as it came, and `stages.models.onnx_names` of model.tflite."""


class OnnxReference:
    """As `stages.reference.interpreter.Reference`, for the file that import made of an ONNX file.

    Tensors are those of the TFLite file, with their shapes and order of axes; `has` tells which are values of the ONNX
    graph, as tensors in between are not.
    """

    def __init__(self, model: bytes, original: bytes, names: Mapping[int, Traced], *, name: str = "model") -> None:
        """model: the TFLite file, original: the ONNX file. Raises RunError where ONNX Runtime refuses it."""
        import onnx

        self.info: ModelInfo = read(model, name)
        self.name, self.names = name, dict(names)
        self.inputs: tuple[TensorInfo, ...] = tuple(self.info.tensors[index] for index in self.info.inputs)
        self.outputs: tuple[TensorInfo, ...] = tuple(self.info.tensors[index] for index in self.info.outputs)
        self.graph = onnx.load_model_from_string(original)
        self._known = sorted({one.name for one in names.values()} - {names[index].name for index in self.info.inputs})
        given = {one.name for one in self.graph.graph.output}
        for one in self._known:
            if one not in given:
                self.graph.graph.output.append(onnx.helper.make_empty_tensor_value_info(one))
        self._session = session(self.graph, name)
        self._types = {one.name: _dtype(one.type) for one in self._session.get_inputs()}
        self._values: dict[str, Array] = {}

    @property
    def described(self) -> str:
        """What reports call the reference."""
        return f"ONNX Runtime {version('onnxruntime')}"

    def run(self, inputs: Sequence[Array] | Mapping[str, Array]) -> list[Array]:
        """Runs once and returns the outputs; `inputs` in the order of `self.inputs`, or by name."""
        given = [inputs[tensor.name] for tensor in self.inputs] if isinstance(inputs, Mapping) else list(inputs)
        feeds = {}
        for tensor, array in zip(self.inputs, given, strict=True):
            traced = self.names[tensor.index]
            feeds[traced.name] = traced.original(np.asarray(array), self._types[traced.name])
        self._values = dict(feeds)
        self._values.update(zip(self._known, self._session.run(self._known, feeds), strict=True))
        return [self.tensor(index) for index in self.info.outputs]

    def reset(self) -> None:
        """Nothing is kept from one run to the next."""

    def has(self, index: int) -> bool:
        """Whether the tensor is a value of the ONNX graph."""
        return index in self.names

    def original(self, index: int) -> Array:
        """What ONNX Runtime had for the tensor in the last run, as it had it."""
        return self._values[self.names[index].name]

    def tensor(self, index: int) -> Array:
        """A tensor of the last run; a constant's value at any time."""
        tensor = self.info.tensors[index]
        if tensor.data is not None:
            return tensor.values()
        if index not in self.names:
            raise RunError(f"tensor {index} of {self.name} is no value of the ONNX graph")
        traced = self.names[index]
        return traced.laid(self._values[traced.name], tensor.dtype).reshape(tensor.shape)

    def computed(self) -> dict[int, Array]:
        """Every tensor that is a value of the ONNX graph, by number, in the order of the operators."""
        written = (index for operator in self.info.operators for index in operator.outputs)
        return {index: self.tensor(index) for index in written if index in self.names}


def session(model: onnx.ModelProto, name: str) -> Any:
    """A session of ONNX Runtime on one thread that computes each operator as it stands. Raises RunError."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    try:
        return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # its exceptions have no common base but this one
        reason = " ".join(str(error).split())[:300]
        raise RunError(f"ONNX Runtime refuses {name}: {reason}") from None


def _dtype(kind: str) -> str:
    """`float32` of ONNX Runtime's `tensor(float)`."""
    inner = kind.removeprefix("tensor(").removesuffix(")")
    return {"float": "float32"}.get(inner, inner)


def onnx_reference(folder: Path, name: str) -> OnnxReference | None:
    """The oracle of an import artifact that came from ONNX, else None."""
    if not (folder / ONNX_FILE).exists():
        return None
    names = loaded((folder / NAMES).read_text())
    return OnnxReference((folder / "model.tflite").read_bytes(), (folder / ONNX_FILE).read_bytes(), names, name=name)
