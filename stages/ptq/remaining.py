"""Integers for operators that ai-edge-quantizer leaves in float32 although Firmline has integer kernels for them.

The library puts DEQUANTIZE before such an operator and QUANTIZE behind it. Here the operator reads and writes the
integers itself; what its output is quantized with depends on the operator:

    alike     the scale of the input, since the operator only moves or picks values (REDUCE_MAX, DEPTH_TO_SPACE); a
              constant beside it gets the same (PADV2)
    fixed     the scale that LiteRT demands (LOG_SOFTMAX, L2_NORMALIZATION)
    same      inputs are brought to the scale of the output (MINIMUM)
    compared  the output is no real number (GREATER, ARG_MAX)
    free      the range on the calibration data (all others)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from stages.import_model.normalize.graph import OneGraph
from stages.ir.models.tflite_reader import ModelInfo, OperatorInfo, builtin_name
from stages.ir.operators.table import OPERATORS

if TYPE_CHECKING:
    from stages.ptq.observe import Range
    from stages.ptq.precision import Precisions

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
# The library fails on these, so they are left out of what it quantizes.
FAILING = frozenset({"PADV2"})
REMAINING = ALIKE | FIXED.keys() | SAME | COMPARED | FREE

_NEARLY_INFINITE = 1e30
Quant = tuple[float, int]


def alike_ranges(info: ModelInfo, ranges: Mapping[int, Range]) -> dict[int, Range]:
    """Return the ranges of tensors, where those of `ALIKE` operators have the range of what they read."""
    found = dict(ranges)
    for operator in info.operators:
        read = [operator.inputs[at] for at in _data(operator)] if operator.op in ALIKE else []
        if read and read[0] in found:
            constants = [info.tensors[index].values() for index in read[1:] if info.tensors[index].data is not None]
            # What stands for minus infinity saturates.
            beside = [float(end) for one in constants for end in (one.min(), one.max()) if abs(end) < _NEARLY_INFINITE]
            low, high = min([found[read[0]].low, *beside]), max([found[read[0]].high, *beside])
            found |= dict.fromkeys((read[0], *operator.outputs), replace(found[read[0]], low=low, high=high))
    return found


def to_integers(graph: OneGraph, info: ModelInfo, ranges: Mapping[int, Range], wanted: Precisions) -> None:
    """Change the operators of `REMAINING` in the library's graph, whose tensors are called `t` and their number.

    info, ranges, wanted: the float network, the ranges of its tensors, and the types of its operators by number.
    """
    work = _Work(graph, {f"t{index}": one for index, one in ranges.items()})
    named = {f"t{operator.outputs[0]}": operator for operator in info.operators if operator.op in REMAINING}
    for operator in list(graph.operators):
        known = named.get(work.name(int(operator.outputs[0])))
        precision = wanted[known.index] if known is not None else None
        if known is not None and precision is not None and known.op == work.op(operator):
            work.convert(operator, known, f"int{precision.activations}")
    work.tidy()


def _data(operator: OperatorInfo) -> list[int]:
    """Return the positions of the inputs that are real numbers."""
    return [at for at, index in enumerate(operator.inputs) if index >= 0 and at not in OPERATORS[operator.op].indices]


class _Work:
    def __init__(self, graph: OneGraph, ranges: Mapping[str, Range]) -> None:
        from ai_edge_litert import schema_py_generated as schema

        self.graph, self.ranges, self.schema = graph, ranges, schema
        self.types = {
            value: name.lower() for name, value in vars(schema.TensorType).items() if not name.startswith("_")
        }

    def name(self, tensor: int) -> str:
        return str(self.graph.tensors[tensor].name.decode())

    def op(self, operator: Any) -> str:
        code = self.graph.codes[operator.opcodeIndex]
        return builtin_name(max(code.builtinCode, code.deprecatedBuiltinCode))

    def dtype(self, tensor: int) -> str:
        found: str = self.types[self.graph.tensors[tensor].type]
        return found

    def quant(self, tensor: int) -> Quant:
        quantization = self.graph.tensors[tensor].quantization
        points = quantization.zeroPoint
        return float(quantization.scale[0]), 0 if points is None or not len(points) else int(points[0])

    def convert(self, operator: Any, known: OperatorInfo, dtype: str) -> None:
        """Let the operator read and write `dtype`; not where it is integer already, or reads constants alone."""
        positions, outputs = _data(known), [int(index) for index in operator.outputs]
        is_float = known.op in COMPARED or all(self.dtype(index) == "float32" for index in outputs)
        if dtype not in OPERATORS[known.op].types or not is_float:
            return
        computed = [at for at in positions if not self._is_constant(int(operator.inputs[at]))]
        if not computed:
            return
        sources = {at: self._source(int(operator.inputs[at]), dtype, operator) for at in computed}
        given = sources[computed[0]]
        made = [] if known.op in COMPARED else [self._output(known.op, index, given, dtype) for index in outputs]
        for at in positions:
            index, source = int(operator.inputs[at]), sources.get(at)
            wanted = made[0] if known.op in SAME | ALIKE else None
            if source is None:
                source = self._constant(index, dtype, wanted)
            elif wanted is not None and self.quant(source) != wanted:
                source = self._quantized(source, dtype, wanted, before=operator)
            operator.inputs[at] = source
        for place, (index, quant) in enumerate(zip(outputs, made, strict=False)):
            operator.outputs[place] = self._dequantized(index, dtype, quant, behind=operator)
            if known.op in FAILING:  # left out of quantization: outputs of the network are float32
                integers = int(operator.outputs[place])
                self.graph.outputs = [integers if one == index else one for one in self.graph.outputs]

    def tidy(self) -> None:
        """Let QUANTIZE read what a DEQUANTIZE reads, and remove both where nothing is left to do."""
        dequantized = {
            int(one.outputs[0]): int(one.inputs[0]) for one in self.graph.operators if self.op(one) == "DEQUANTIZE"
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
        read = {int(index) for operator in kept for index in operator.inputs} | set(self.graph.outputs)
        self.graph.operators = [one for one in kept if self.op(one) != "DEQUANTIZE" or int(one.outputs[0]) in read]

    # ---- tensors -------------------------------------------------------------------------------------------------

    def _source(self, tensor: int, dtype: str, reader: Any) -> int:
        """Return the integers that a float tensor is dequantized from; else it is quantized before its reader."""
        if self.dtype(tensor) == dtype:
            return tensor
        for operator in self.graph.operators:
            if int(operator.outputs[0]) == tensor and self.op(operator) == "DEQUANTIZE":
                source = int(operator.inputs[0])
                if self.dtype(source) == dtype:
                    return source
        return self._quantized(tensor, dtype, self._of_data(tensor, dtype), before=reader)

    def _is_constant(self, tensor: int) -> bool:
        return len(self.graph.buffers[self.graph.tensors[tensor].buffer]) > 0

    def _output(self, op: str, tensor: int, source: int, dtype: str) -> Quant:
        """Return the scale and zero point of an output, those of a QUANTIZE behind it where the operator is free."""
        if op in ALIKE:
            return self.quant(source)
        if op in FIXED and dtype == "int8":
            return FIXED[op]
        return self._of_data(tensor, dtype)

    def _of_data(self, tensor: int, dtype: str) -> Quant:
        """Return what a float tensor is quantized with elsewhere, or by its range on the data."""
        for operator in self.graph.operators:
            source, target = int(operator.inputs[0]), int(operator.outputs[0])
            if self.op(operator) == "QUANTIZE" and source == tensor and self.dtype(target) == dtype:
                return self.quant(target)
        seen = self.ranges[self.name(tensor).removesuffix("_dequant")]
        return _of_range(seen.low, seen.high, dtype)

    def _constant(self, tensor: int, dtype: str, quant: Quant | None) -> int:
        values = np.frombuffer(self.graph.buffers[self.graph.tensors[tensor].buffer], np.float32)
        scale, zero_point = quant or _of_range(float(values.min()), float(values.max()), dtype)
        limits = np.iinfo(dtype)
        integers = np.clip(np.rint(values / np.float32(scale)) + zero_point, limits.min, limits.max).astype(dtype)
        made = self._tensor(tensor, f"{self.name(tensor)}_quantized", dtype, (scale, zero_point))
        self.graph.tensors[made].buffer = len(self.graph.buffers)
        self.graph.buffers.append(memoryview(integers.tobytes()))
        return made

    def _tensor(self, like: int, name: str, dtype: str, quant: Quant) -> int:
        of = self.graph.tensors[like]
        made = self.schema.TensorT(name=name.encode(), shape=of.shape, hasRank=True)
        made.type = getattr(self.schema.TensorType, dtype.upper())
        made.quantization = self.schema.QuantizationParametersT(
            scale=np.array([quant[0]], np.float32), zeroPoint=np.array([quant[1]], np.int64)
        )
        self.graph.tensors.append(made)
        return len(self.graph.tensors) - 1

    # ---- operators -----------------------------------------------------------------------------------------------

    def _quantized(self, source: int, dtype: str, quant: Quant, before: Any) -> int:
        made = self._tensor(source, f"{self.name(source)}_again", dtype, quant)
        self._insert(self._place(before), "QUANTIZE", source, made)
        return made

    def _dequantized(self, tensor: int, dtype: str, quant: Quant, behind: Any) -> int:
        """Return new integers of which the float tensor is dequantized from now on."""
        made = self._tensor(tensor, self.name(tensor), dtype, quant)
        self.graph.tensors[tensor].name += b"_dequant"
        self._insert(self._place(behind) + 1, "DEQUANTIZE", made, tensor)
        return made

    def _place(self, operator: Any) -> int:
        return next(place for place, one in enumerate(self.graph.operators) if one is operator)

    def _insert(self, place: int, op: str, source: int, target: int) -> None:
        made = self.schema.OperatorT(opcodeIndex=self._code(op, 2))
        made.inputs, made.outputs = np.array([source], np.int32), np.array([target], np.int32)
        self.graph.operators.insert(place, made)

    def _code(self, op: str, version: int) -> int:
        code = getattr(self.schema.BuiltinOperator, op)
        for number, one in enumerate(self.graph.codes):
            if (max(one.builtinCode, one.deprecatedBuiltinCode), one.version) == (code, version):
                return number
        made = self.schema.OperatorCodeT(builtinCode=code, deprecatedBuiltinCode=min(code, 127), version=version)
        self.graph.codes.append(made)
        return len(self.graph.codes) - 1


def _of_range(low: float, high: float, dtype: str) -> Quant:
    """Return scale and zero point for numbers from low to high, with 0 among them; of int16 the zero point is 0."""
    low, high = min(low, 0.0), max(high, 0.0)
    if dtype == "int16":
        return max(max(-low, high) / 32767, float(np.finfo(np.float32).tiny)), 0
    scale = float(np.float32(max((high - low) / 255, float(np.finfo(np.float32).tiny))))
    return scale, int(min(max(round(-128 - low / scale), -128), 127))
