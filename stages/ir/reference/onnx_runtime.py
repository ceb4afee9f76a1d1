"""ONNX Runtime on the CPU, with its graph optimizations off: the oracle of networks that came as ONNX."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from stages.ir.models.onnx_names import Traced, loaded
from stages.ir.models.tflite_reader import ModelInfo, TensorInfo, read
from stages.ir.operators.declaration import CUSTOM
from stages.ir.operators.table import OPERATORS
from stages.ir.reference.interpreter import Array
from stages.ir.reference.onnx_parts import CustomParts
from stages.ir.reference.onnx_session import session
from stages.ir.reference.parts import judge_of
from stages.ir.reference.refusal import RunError

if TYPE_CHECKING:
    import onnx

ONNX_FILE, NAMES = "model.onnx", "onnx.json"
"""In the artifact of import: the file as it came, and `stages.ir.models.onnx_names` of model.tflite."""


class OnnxReference:
    """As `stages.ir.reference.interpreter.Reference`, for the file that import made of an ONNX file.

    Tensors are those of the TFLite file, with their shapes and order of axes; `has` tells which are values of the ONNX
    graph, as tensors in between are not.
    """

    def __init__(self, model: bytes, original: bytes, names: Mapping[int, Traced], *, name: str = "model") -> None:
        """model: the TFLite file, original: the ONNX file. Raises RunError where ONNX Runtime refuses it."""
        import onnx

        self.info: ModelInfo = read(model, name)
        self.name, self.names, self.model = name, dict(names), model
        self.inputs: tuple[TensorInfo, ...] = tuple(self.info.tensors[index] for index in self.info.inputs)
        self.outputs: tuple[TensorInfo, ...] = tuple(self.info.tensors[index] for index in self.info.outputs)
        self.graph = onnx.load_model_from_string(original)
        self.known = sorted({one.name for one in names.values()} - {names[index].name for index in self.info.inputs})
        given = {one.name for one in self.graph.graph.output}
        for one in self.known:
            if one not in given:
                self.graph.graph.output.append(onnx.helper.make_empty_tensor_value_info(one))
        self.types = {one.name: _dtype(one) for one in self.graph.graph.input}
        self.customs = [operator for operator in self.info.operators if operator.op.startswith(CUSTOM)]
        self._parts = CustomParts(self) if self.customs else None
        self._session: Any = None if self.customs else session(self.graph, name)
        self._values: dict[str, Array] = {}

    @property
    def described(self) -> str:
        """What reports call the reference: `ONNX Runtime 1.31.1 for 8 of 9 operators, ...` where plug-ins are asked."""
        whole = f"ONNX Runtime {version('onnxruntime')}"
        if not self.customs:
            return whole
        total, names = len(self.graph.graph.node), [operator.op for operator in self.customs]
        theirs = [f"{judge_of(name)} for {names.count(name)} x {OPERATORS[name].onnx}" for name in dict.fromkeys(names)]
        return ", ".join([f"{whole} for {total - len(names)} of {total} operators", *theirs])

    def run(self, inputs: Sequence[Array] | Mapping[str, Array]) -> list[Array]:
        """Runs once and returns the outputs; `inputs` in the order of `self.inputs`, or by name."""
        given = [inputs[tensor.name] for tensor in self.inputs] if isinstance(inputs, Mapping) else list(inputs)
        feeds = {}
        for tensor, array in zip(self.inputs, given, strict=True):
            traced = self.names[tensor.index]
            feeds[traced.name] = traced.original(np.asarray(array), self.types[traced.name])
        self._values = dict(feeds)
        if self._parts is not None:
            self._parts.run(self._values)
        else:
            self._values.update(zip(self.known, self._session.run(self.known, feeds), strict=True))
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


def _dtype(one: onnx.ValueInfoProto) -> str:
    """The type of an input, as numpy calls it."""
    import onnx

    return str(onnx.helper.tensor_dtype_to_np_dtype(one.type.tensor_type.elem_type))


def onnx_reference(folder: Path, name: str) -> OnnxReference | None:
    """The oracle of an import artifact that came from ONNX, else None."""
    if not (folder / ONNX_FILE).exists():
        return None
    names = loaded((folder / NAMES).read_text())
    return OnnxReference((folder / "model.tflite").read_bytes(), (folder / ONNX_FILE).read_bytes(), names, name=name)
