"""TFLM's own interpreter as the reference of its signal operators.

Each operator runs as a separate file in a separate interpreter, so that all tensors in between can be compared. The
interpreter keeps the operator's state. TFLM's kernels of one axis run once for each frame, in order.
"""

from collections.abc import Mapping, Sequence
from importlib.metadata import version
from math import prod
from typing import Any

import numpy as np

from stages.ir.arrays import Array
from stages.ir.model_info import ModelInfo, OperatorInfo, TensorInfo
from stages.ir.models.tflite_writer import TFLiteWriter
from stages.ir.operators.declaration import CUSTOM
from stages.ir.operators.operation import Operation
from stages.ir.operators.table import OPERATORS
from stages.ir.reference.refusal import RunError
from stages.support.messages.operator_error import operator_label

# Axes of computed inputs and of outputs in one run of TFLM's kernel. Kernels that are absent take any number.
_AXES: Mapping[str, tuple[tuple[int, ...], tuple[int, ...]]] = {
    "FftAutoScale": ((1,), (1, 0)),
    "Energy": ((1,), (1,)),
    "FilterBank": ((1,), (1,)),
    "FilterBankSquareRoot": ((1, 0), (1,)),
    "FilterBankSpectralSubtraction": ((1,), (1, 1)),
    "PCAN": ((1, 1), (1,)),
    "FilterBankLog": ((1,), (1,)),
    "Stacker": ((1,), (1, 0)),
}
_PREFIX = f"{CUSTOM}Signal"
_FRAMER = f"{_PREFIX}Framer"
_ARENA = 1 << 20  # bytes beside those of the tensors and of an FFT's tables


def tflm() -> str:
    """Return the reference's name with the installed version: `TFLM 0.dev20261023182759`."""
    return f"TFLM {version('tflite-micro')}"


def is_tflm(op: str) -> bool:
    """Return whether TFLM's interpreter is the reference of this operator."""
    return op.startswith(_PREFIX) and op in OPERATORS and OPERATORS[op].litert.tflm


class SignalReference:
    """One signal operator in TFLM's interpreter, with its state."""

    def __init__(self, operator: OperatorInfo, info: ModelInfo) -> None:
        """Describe the operator. The interpreter starts with the first run."""
        self.operator = operator
        self._operation = Operation.of(operator, info)
        self._interpreter: Any = None
        axes = _AXES.get(operator.op.removeprefix(_PREFIX))
        computed = [tensor for tensor in self._operation.inputs if tensor is not None and tensor.data is None]
        self.inputs: tuple[TensorInfo, ...] = tuple(computed)
        self._input_shapes = [
            t.shape if axes is None else t.shape[len(t.shape) - axes[0][i] :] for i, t in enumerate(computed)
        ]
        outputs = enumerate(self._operation.outputs)
        self._output_shapes = [t.shape if axes is None else t.shape[len(t.shape) - axes[1][i] :] for i, t in outputs]
        if operator.op == _FRAMER:
            options = self._operation.flexbuffer
            shape, frame = computed[0].shape[:-1], (1, options["frame_size"])
            self._input_shapes, self._output_shapes = [(*shape, options["frame_step"])], [(*shape, *frame), ()]
        self._frames = prod(computed[0].shape) // prod(self._input_shapes[0])

    def run(self, arrays: Sequence[Array]) -> list[Array]:
        """Run all frames and return the outputs. Raises RunError if TFLM refuses the operator.

        arrays  values of `inputs`
        """
        if self._interpreter is None:
            self._interpreter = self._start()
        if self.operator.op == _FRAMER:
            return self._framed(arrays[0])
        each = [array.reshape(-1, *shape) for array, shape in zip(arrays, self._input_shapes, strict=True)]
        frames = [self._frame([array[number] for array in each]) for number in range(self._frames)]
        outputs = zip(self._operation.outputs, zip(*frames, strict=True), strict=True)
        return [np.stack(parts).reshape(tensor.shape) for tensor, parts in outputs]

    def _framed(self, samples: Array) -> list[Array]:
        """Run SignalFramer for each frame, because it reports once whether all frames are valid."""
        step = self._input_shapes[0][-1]
        steps = [samples[..., at : at + step] for at in range(0, samples.shape[-1], step)]
        runs = [self._frame([samples]) for samples in steps]
        return [np.concatenate([frame for frame, _ in runs], -2), np.array(all(valid for _, valid in runs))]

    def reset(self) -> None:
        """Forget the state."""
        self._interpreter = None

    def _frame(self, arrays: Sequence[Array]) -> list[Array]:
        for number, array in enumerate(arrays):
            self._interpreter.set_input(np.asarray(array, order="C"), number)
        try:
            self._interpreter.invoke()
        except RuntimeError as error:
            raise self._error(error) from None
        outputs = [np.asarray(self._interpreter.get_output(number)) for number in range(len(self._output_shapes))]
        return self._defined(outputs)

    def _defined(self, outputs: list[Array]) -> list[Array]:
        """Return the outputs, with 0 for values that TFLM leaves unset."""
        if self.operator.op == f"{_PREFIX}Energy":
            options = self._operation.flexbuffer
            outputs[0][: options["start_index"]] = 0
            outputs[0][options["end_index"] :] = 0
        if self.operator.op in (_FRAMER, f"{_PREFIX}Stacker") and not outputs[1]:
            outputs[0][...] = 0
        return outputs

    def _start(self) -> Any:
        try:
            from tflite_micro import runtime
        except ImportError:
            subject = operator_label(self.operator.index, self.operator.op)
            hint = "Install it: ./bootstrap --with audio, or pip install 'firmline[audio]'"
            raise RunError(f"{subject} needs the Python package tflite-micro, its reference", hint=hint) from None
        writer, number = TFLiteWriter(), 0
        tensors = []
        for tensor in self._operation.inputs:
            assert tensor is not None
            if tensor.data is not None:
                tensors.append(writer.constant(f"constant{tensor.index}", tensor.values()))
                continue
            tensors.append(writer.input(f"input{number}", self._input_shapes[number], tensor.dtype))
            number += 1
        outputs = [
            writer.tensor(f"output{number}", shape, tensor.dtype)
            for number, (shape, tensor) in enumerate(zip(self._output_shapes, self._operation.outputs, strict=True))
        ]
        writer.operator(self.operator.op, tensors, outputs, custom=self.operator.custom)
        writer.output(*outputs)
        size = _ARENA + 16 * sum(tensor.bytes for tensor in (*self.inputs, *self._operation.outputs))
        try:
            return runtime.Interpreter.from_bytes(writer.build(), arena_size=size)
        except RuntimeError as error:
            raise self._error(error) from None

    def _error(self, error: Exception) -> RunError:
        subject = operator_label(self.operator.index, self.operator.op)
        return RunError(f"{subject} is refused by TFLM: {' '.join(str(error).split())}")
