"""Weights and biases of a float network, changed by output or input channel."""

from collections import Counter
from typing import Any

import numpy as np
import numpy.typing as npt

from stages.import_model.normalize.graph import one_graph
from stages.ir.model_info import ModelInfo, OperatorInfo

Array = npt.NDArray[np.float64]
# The axis of the output channels: weights are OHWI, 1HWC and [units, depth].
_OUTPUT = {"CONV_2D": 0, "DEPTHWISE_CONV_2D": 3, "FULLY_CONNECTED": 0}
_INPUT = {"CONV_2D": 3, "FULLY_CONNECTED": 1}


class Weights:
    """Constants of a file's weighted layers, in float64 until they are `packed`."""

    def __init__(self, data: bytes, info: ModelInfo) -> None:
        self._data, self._info = data, info
        readers = Counter(index for operator in info.operators for index in operator.inputs)
        self._values: dict[int, Array] = {}
        self._changed: set[int] = set()
        for operator in info.operators:
            constants = [index for index in operator.inputs[1:3] if index >= 0] if operator.op in _OUTPUT else []
            tensors = [info.tensors[index] for index in constants]
            # Shared constants cannot be changed for one layer.
            if all(t.data is not None and t.dtype == "float32" and readers[t.index] == 1 for t in tensors):
                self._values |= {tensor.index: tensor.values().astype(np.float64) for tensor in tensors}

    def has(self, operator: OperatorInfo) -> bool:
        """Return whether the operator has private weights, each for one input channel of one group."""
        if operator.op not in _OUTPUT or operator.inputs[1] not in self._values:
            return False
        channels = self._info.tensors[operator.inputs[0]].shape[-1:]
        return operator.op != "CONV_2D" or channels == self._values[operator.inputs[1]].shape[3:]

    def has_bias(self, operator: OperatorInfo) -> bool:
        """Return whether the operator has a private bias."""
        return self._bias(operator) is not None

    def by_output(self, operator: OperatorInfo) -> Array:
        """Return the weights as a view, [output channels, …]."""
        return np.moveaxis(self._values[operator.inputs[1]], _OUTPUT[operator.op], 0)

    def by_input(self, operator: OperatorInfo) -> Array:
        """Return the weights as a view, [input channels, …]."""
        values = self._values[operator.inputs[1]]
        if operator.op in _INPUT:
            return np.moveaxis(values, _INPUT[operator.op], 0)
        # A depthwise input channel has `multiplier` output channels.
        channels = self._info.tensors[operator.inputs[0]].shape[3]
        return np.moveaxis(values.reshape(*values.shape[:3], channels, -1), 3, 0)

    def scale_output(self, operator: OperatorInfo, factors: Array) -> None:
        """Multiply the weights and the bias of each output channel."""
        view = self.by_output(operator)
        view *= factors.reshape(-1, *[1] * (view.ndim - 1))
        bias = self._bias(operator)
        if bias is not None:
            self._values[bias] *= factors
            self._changed.add(bias)
        self._changed.add(operator.inputs[1])

    def scale_input(self, operator: OperatorInfo, factors: Array) -> None:
        """Multiply the weights of each input channel."""
        view = self.by_input(operator)
        view *= factors.reshape(-1, *[1] * (view.ndim - 1))
        self._changed.add(operator.inputs[1])

    def add_bias(self, operator: OperatorInfo, amounts: Array) -> None:
        """Add to the bias of each output channel; the operator must have a bias."""
        bias = self._bias(operator)
        assert bias is not None
        self._values[bias] += amounts
        self._changed.add(bias)

    def packed(self) -> bytes:
        """Return the file with the changed constants as float32."""
        graph: Any = one_graph(self._data, "the network", 0)
        for index in sorted(self._changed):
            graph.tensors[index].buffer = len(graph.buffers)
            graph.buffers.append(memoryview(self._values[index].astype("<f4").tobytes()))
        packed: bytes = graph.pack()
        return packed

    def _bias(self, operator: OperatorInfo) -> int | None:
        bias = operator.inputs[2] if len(operator.inputs) > 2 else -1
        return bias if bias in self._values else None
