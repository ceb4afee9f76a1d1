"""Quantize operators that ai-edge-quantizer leaves in float32.

Firmline has integer kernels for them. The library writes a DEQUANTIZE before such an operator and a QUANTIZE after it.
Here the operator reads and writes the integers directly. The scale of its output depends on the operator:

    alike     the input's scale, as the operator only moves or picks values (REDUCE_MAX, DEPTH_TO_SPACE); a constant
              input gets the same scale (PADV2)
    fixed     the scale that LiteRT requires (LOG_SOFTMAX, L2_NORMALIZATION)
    same      inputs are rescaled to the output's scale (MINIMUM)
    compared  the output is no real number (GREATER, ARG_MAX)
    free      from the range on the calibration data (all others)
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from stages.import_model.normalize.graph import OneGraph
from stages.ir.model_info import ModelInfo, OperatorInfo
from stages.ir.models.tflite_reader import builtin_name
from stages.ir.operators.table import OPERATORS
from stages.ptq.observe import Range
from stages.ptq.precision import Precisions
from stages.support.lazy import schema

ALIKE = frozenset({
    "BATCH_TO_SPACE_ND", "DEPTH_TO_SPACE", "EXPAND_DIMS", "PADV2", "REDUCE_MAX", "REVERSE_V2", "SPACE_TO_BATCH_ND",
    "SPLIT_V", "SQUEEZE", "TILE",
})  # fmt: skip
FIXED = {"L2_NORMALIZATION": (1 / 128, 0), "LOG_SOFTMAX": (16 / 256, 127)}
SAME = frozenset({"MINIMUM"})
COMPARED = frozenset({"ARG_MAX", "ARG_MIN", "GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL"})
FREE = frozenset({
    "ABS", "ELU", "EXP", "LEAKY_RELU", "LOG", "NEG", "PRELU", "REDUCE_PROD", "RELU6", "RELU_N1_TO_1",
})  # fmt: skip
# The library fails on these, so it must not quantize them.
FAILING = frozenset({"PADV2"})
REMAINING = ALIKE | FIXED.keys() | SAME | COMPARED | FREE

_NEARLY_INFINITE = 1e30
Quant = tuple[float, int]


def alike_ranges(info: ModelInfo, ranges: Mapping[int, Range]) -> dict[int, Range]:
    """Return the ranges; `ALIKE` operators get the range of their inputs and constants."""
    result = dict(ranges)
    for operator in info.operators:
        sources = [operator.inputs[at] for at in _data(operator)] if operator.op in ALIKE else []
        if sources and sources[0] in result:
            constants = [info.tensors[index].values() for index in sources[1:] if info.tensors[index].data is not None]
            # Values for minus infinity saturate.
            constant_ends = [
                float(end)
                for constant in constants
                for end in (constant.min(), constant.max())
                if abs(end) < _NEARLY_INFINITE
            ]
            low, high = min([result[sources[0]].low, *constant_ends]), max([result[sources[0]].high, *constant_ends])
            result |= dict.fromkeys((sources[0], *operator.outputs), replace(result[sources[0]], low=low, high=high))
    return result


def to_integers(graph: OneGraph, info: ModelInfo, ranges: Mapping[int, Range], wanted: Precisions) -> None:
    """Quantize the operators of `REMAINING` in the library's graph.

    Its tensors have names `t` + number. info, ranges, wanted: the float network, the ranges of its tensors, and the
    precision of its operators by number.
    """
    editor = _GraphEditor(graph, {f"t{index}": bounds for index, bounds in ranges.items()})
    by_output = {f"t{operator.outputs[0]}": operator for operator in info.operators if operator.op in REMAINING}
    for operator in list(graph.operators):
        operator_info = by_output.get(editor.name(int(operator.outputs[0])))
        precision = wanted[operator_info.index] if operator_info is not None else None
        if operator_info is not None and precision is not None and operator_info.op == editor.op(operator):
            editor.convert(operator, operator_info, f"int{precision.activations}")
    editor.tidy()


def _data(operator: OperatorInfo) -> list[int]:
    """Return the positions of inputs that are real numbers."""
    return [
        at
        for at, index in enumerate(operator.inputs)
        if index >= 0 and at not in OPERATORS[operator.op].tensors.indices
    ]


class _GraphEditor:
    """Edits the library's graph."""

    def __init__(self, graph: OneGraph, ranges: Mapping[str, Range]) -> None:
        self.graph, self.ranges, self.schema = graph, ranges, schema
        self.types = {
            value: name.lower() for name, value in vars(schema.TensorType).items() if not name.startswith("_")
        }

    def name(self, tensor: int) -> str:
        """Return a tensor's name."""
        return str(self.graph.tensors[tensor].name.decode())

    def op(self, operator: Any) -> str:
        """Return an operator's name."""
        code = self.graph.codes[operator.opcodeIndex]
        return builtin_name(max(code.builtinCode, code.deprecatedBuiltinCode))

    def dtype(self, tensor: int) -> str:
        """Return a tensor's type."""
        name: str = self.types[self.graph.tensors[tensor].type]
        return name

    def quant(self, tensor: int) -> Quant:
        """Return a tensor's scale and zero point."""
        quantization = self.graph.tensors[tensor].quantization
        points = quantization.zeroPoint
        return float(quantization.scale[0]), 0 if points is None or not len(points) else int(points[0])

    def convert(self, operator: Any, operator_info: OperatorInfo, dtype: str) -> None:
        """Make an operator read and write `dtype`, unless it is integer or reads only constants."""
        positions, outputs = _data(operator_info), [int(index) for index in operator.outputs]
        is_float = operator_info.op in COMPARED or all(self.dtype(index) == "float32" for index in outputs)
        if dtype not in OPERATORS[operator_info.op].tensors.types or not is_float:
            return
        computed = [at for at in positions if not self._is_constant(int(operator.inputs[at]))]
        if not computed:
            return
        sources = {at: self._source(int(operator.inputs[at]), dtype, operator) for at in computed}
        first_source = sources[computed[0]]
        quants = (
            []
            if operator_info.op in COMPARED
            else [self._output(operator_info.op, index, first_source, dtype) for index in outputs]
        )
        for at in positions:
            index, source = int(operator.inputs[at]), sources.get(at)
            wanted = quants[0] if operator_info.op in SAME | ALIKE else None
            if source is None:
                source = self._constant(index, dtype, wanted)
            elif wanted is not None and self.quant(source) != wanted:
                source = self._quantized(source, dtype, wanted, before=operator)
            operator.inputs[at] = source
        for place, (index, quant) in enumerate(zip(outputs, quants, strict=False)):
            operator.outputs[place] = self._dequantized(index, dtype, quant, behind=operator)
            if operator_info.op in FAILING:  # not quantized by the library: network outputs are float32
                integers = int(operator.outputs[place])
                self.graph.outputs = [integers if output == index else output for output in self.graph.outputs]

    def tidy(self) -> None:
        """Let QUANTIZE read the input of a DEQUANTIZE, and remove pairs without effect."""
        dequantized = {
            int(operator.outputs[0]): int(operator.inputs[0])
            for operator in self.graph.operators
            if self.op(operator) == "DEQUANTIZE"
        }
        renamed: dict[int, int] = {}
        kept = []
        for operator in self.graph.operators:
            operator.inputs = np.array([renamed.get(int(index), int(index)) for index in operator.inputs], np.int32)
            source = dequantized.get(int(operator.inputs[0])) if self.op(operator) == "QUANTIZE" else None
            if source is not None:
                out = int(operator.outputs[0])
                if (self.dtype(source), self.quant(source)) == (self.dtype(out), self.quant(out)):
                    renamed[out] = source
                    continue
                operator.inputs[0] = source
            kept.append(operator)
        self.graph.outputs = [renamed.get(index, index) for index in self.graph.outputs]
        tensors_read = {int(index) for operator in kept for index in operator.inputs} | set(self.graph.outputs)
        self.graph.operators = [
            operator
            for operator in kept
            if self.op(operator) != "DEQUANTIZE" or int(operator.outputs[0]) in tensors_read
        ]

    # ---- tensors -------------------------------------------------------------------------------------------------

    def _source(self, tensor: int, dtype: str, reader: Any) -> int:
        """Return the integers of a float tensor; quantize it before `reader` if there are none."""
        if self.dtype(tensor) == dtype:
            return tensor
        for operator in self.graph.operators:
            if int(operator.outputs[0]) == tensor and self.op(operator) == "DEQUANTIZE":
                source = int(operator.inputs[0])
                if self.dtype(source) == dtype:
                    return source
        return self._quantized(tensor, dtype, self._quant_from_data(tensor, dtype), before=reader)

    def _is_constant(self, tensor: int) -> bool:
        return len(self.graph.buffers[self.graph.tensors[tensor].buffer]) > 0

    def _output(self, op: str, tensor: int, source: int, dtype: str) -> Quant:
        """Return scale and zero point of an output."""
        if op in ALIKE:
            return self.quant(source)
        if op in FIXED and dtype == "int8":
            return FIXED[op]
        return self._quant_from_data(tensor, dtype)

    def _quant_from_data(self, tensor: int, dtype: str) -> Quant:
        """Return scale and zero point of an existing QUANTIZE, or from the range on the data."""
        for operator in self.graph.operators:
            source, target = int(operator.inputs[0]), int(operator.outputs[0])
            if self.op(operator) == "QUANTIZE" and source == tensor and self.dtype(target) == dtype:
                return self.quant(target)
        seen = self.ranges[self.name(tensor).removesuffix("_dequant")]
        return _quant_from_range(seen.low, seen.high, dtype)

    def _constant(self, tensor: int, dtype: str, quant: Quant | None) -> int:
        values = np.frombuffer(self.graph.buffers[self.graph.tensors[tensor].buffer], np.float32)
        scale, zero_point = quant or _quant_from_range(float(values.min()), float(values.max()), dtype)
        limits = np.iinfo(dtype)
        integers = np.clip(np.rint(values / np.float32(scale)) + zero_point, limits.min, limits.max).astype(dtype)
        constant = self._tensor(tensor, f"{self.name(tensor)}_quantized", dtype, (scale, zero_point))
        self.graph.tensors[constant].buffer = len(self.graph.buffers)
        self.graph.buffers.append(memoryview(integers.tobytes()))
        return constant

    def _tensor(self, like: int, name: str, dtype: str, quant: Quant) -> int:
        template = self.graph.tensors[like]
        tensor = self.schema.TensorT(name=name.encode(), shape=template.shape, hasRank=True)
        tensor.type = getattr(self.schema.TensorType, dtype.upper())
        tensor.quantization = self.schema.QuantizationParametersT(
            scale=np.array([quant[0]], np.float32), zeroPoint=np.array([quant[1]], np.int64)
        )
        self.graph.tensors.append(tensor)
        return len(self.graph.tensors) - 1

    # ---- operators -----------------------------------------------------------------------------------------------

    def _quantized(self, source: int, dtype: str, quant: Quant, before: Any) -> int:
        quantized = self._tensor(source, f"{self.name(source)}_again", dtype, quant)
        self._insert(self._place(before), "QUANTIZE", source, quantized)
        return quantized

    def _dequantized(self, tensor: int, dtype: str, quant: Quant, behind: Any) -> int:
        """Return a new integer tensor from which the float tensor is dequantized."""
        integers = self._tensor(tensor, self.name(tensor), dtype, quant)
        self.graph.tensors[tensor].name += b"_dequant"
        self._insert(self._place(behind) + 1, "DEQUANTIZE", integers, tensor)
        return integers

    def _place(self, operator: Any) -> int:
        return next(position for position, candidate in enumerate(self.graph.operators) if candidate is operator)

    def _insert(self, place: int, op: str, source: int, target: int) -> None:
        operator = self.schema.OperatorT(opcodeIndex=self._code(op, 2))
        operator.inputs, operator.outputs = np.array([source], np.int32), np.array([target], np.int32)
        self.graph.operators.insert(place, operator)

    def _code(self, op: str, version: int) -> int:
        code = getattr(self.schema.BuiltinOperator, op)
        for number, entry in enumerate(self.graph.codes):
            if (max(entry.builtinCode, entry.deprecatedBuiltinCode), entry.version) == (code, version):
                return number
        operator_code = self.schema.OperatorCodeT(
            builtinCode=code, deprecatedBuiltinCode=min(code, 127), version=version
        )
        self.graph.codes.append(operator_code)
        return len(self.graph.codes) - 1


def _quant_from_range(low: float, high: float, dtype: str) -> Quant:
    """Return scale and zero point for a range that includes 0; for int16 the zero point is 0."""
    low, high = min(low, 0.0), max(high, 0.0)
    if dtype == "int16":
        return max(max(-low, high) / 32767, float(np.finfo(np.float32).tiny)), 0
    scale = float(np.float32(max((high - low) / 255, float(np.finfo(np.float32).tiny))))
    return scale, int(min(max(round(-128 - low / scale), -128), 127))
