"""LiteRT's refusals and crashes as errors about the model's operators."""

import re
from collections.abc import Callable
from signal import Signals

import numpy as np

from stages.ir.model_info import ModelInfo, OperatorInfo, TensorInfo
from stages.ir.naming import named, tensor_names
from stages.support.lazy import schema
from stages.support.messages.operator_error import operator_label
from stages.support.messages.stage_error import StageError
from stages.support.messages.wording import several

_NODE = re.compile(r"Node number (\d+) \(\w+\) failed to (?:prepare|invoke)\.?")
_PLACE = re.compile(r"\S*\.(?:cc|h):\d+ ")  # the line of LiteRT's source
_UNKNOWN = re.compile(r"Didn't find op for builtin opcode '(\w+)' version '(\d+)'")
_INDICES = (
    "Random inputs are no indices: give files with numbers inside of their axis, "
    "stages: {simulate: {inputs: {random: 0, extremes: false, files: [...]}}}."
)
# The two sides of a failed condition: floats are printed as arbitrary integers.
_PRINTED = re.compile(r"\s*\([-+.\w]+ [!=<>]+ [-+.\w]+\)$")
_ONE_SCALE = ("CONCATENATION", "PACK")
_HINT = "LiteRT gives the results that everything is verified with."


class RunError(StageError):
    """LiteRT refuses the model or its inputs."""


def refusal(info: ModelInfo, name: str, message: str) -> RunError:
    """Return the error for LiteRT's message, with the operator that it names."""
    text = " ".join(message.split())
    if "not a valid Flatbuffer" in text:
        return RunError(
            f"{name} is a corrupt TFLite file: LiteRT's check of it fails", hint="Export or download it again."
        )
    if unknown := _UNKNOWN.search(text):
        return _unknown(info, *unknown.groups())
    node = _NODE.search(text)
    reason = _PLACE.sub("", text[: node.start()] if node else text).strip(" .")
    if node is None or int(node[1]) >= len(info.operators):
        return RunError(f"LiteRT refuses {name}: {reason or 'it does not say why'}", hint=_HINT)
    operator = info.operators[int(node[1])]
    if "scale" in reason or "params.zero_point" in reason:
        return _scales(operator, info, _PRINTED.sub("", reason))
    subject = operator_label(operator.index, operator.op)
    return RunError(
        f"{subject} is refused by LiteRT: {reason or 'it does not say why'}\n  {tensor_names(operator, info)}",
        hint=_INDICES if "index out of bounds" in reason else _HINT,
    )


def _scales(operator: OperatorInfo, info: ModelInfo, condition: str) -> RunError:
    """Return the error for a condition on scales, with the scales of the file.

    LiteRT prints them as integers.
    """
    reads, writes = (
        several([_quantized(info.tensors[index]) for index in indices if index >= 0], 4)
        for indices in (operator.inputs, operator.outputs)
    )
    what = "takes one scale and zero point for all int8 tensors"
    if operator.op not in _ONE_SCALE:
        what = f"does not take these scales (LiteRT: {condition})"
    return RunError(
        f"{operator_label(operator.index, operator.op)} {what}\n  {reads} -> {writes}",
        hint=f"Quantize the model anew, or put a QUANTIZE before the operator. {_HINT}",
    )


def _quantized(tensor: TensorInfo) -> str:
    """Return a tensor with its quantization: `'x' (scale 0.5, zero point 3)`."""
    if not tensor.scale.size:
        return named(tensor)
    scales = str(tensor.scale[0]) if tensor.scale.size == 1 else f"{tensor.scale.min()} to {tensor.scale.max()}"
    ends = sorted({int(tensor.zero_point.min()), int(tensor.zero_point.max())})
    return f"{named(tensor)} (scale {scales}, zero point {' to '.join(map(str, ends))})"


def _unknown(info: ModelInfo, op: str, version: str) -> RunError:
    """Return the error for an operator or version that LiteRT lacks.

    LiteRT looks up all operators that the file lists, also unused ones.
    """
    what = f"version {version} of {op}, which LiteRT does not know"
    operator = next((operator for operator in info.operators if operator.op == op), None)
    if operator is None:
        return RunError(f"the file lists {what}; no operator uses it", hint=_HINT)
    return RunError(
        f"{operator_label(operator.index, operator.op)} is {what}\n  {tensor_names(operator, info)}", hint=_HINT
    )


def crash(info: ModelInfo, name: str, signal: int, operator: OperatorInfo | None, when: str) -> RunError:
    """Return the error for a crash of LiteRT with a signal `when` ("while it is loaded").

    operator  where it crashed, None if unknown
    """
    ended = f"ends LiteRT with {Signals(signal).name} {when}"
    if operator is None:
        return RunError(f"{name} {ended}", hint=_HINT)
    return RunError(
        f"{operator_label(operator.index, operator.op)} {ended}\n  {tensor_names(operator, info)}", hint=_HINT
    )


def first_crashing_operator(model: bytes, info: ModelInfo, dies: Callable[[bytes], bool]) -> OperatorInfo | None:
    """Return the first operator with which LiteRT crashes; None if it does not crash.

    dies  whether it crashes with a model; called log2(operators) times with the first operators only
    """
    low, high = 0, len(info.operators)
    if not high or not dies(_first(model, high)):
        return None
    while high - low > 1:
        middle = (low + high) // 2
        if dies(_first(model, middle)):
            high = middle
        else:
            low = middle
    return info.operators[high - 1]


def _first(model: bytes, count: int) -> bytes:
    """Return the model cut after `count` operators; the last one's outputs are its outputs."""
    import flatbuffers

    model_table = schema.ModelT.InitFromObj(schema.Model.GetRootAs(model, 0))
    graph = model_table.subgraphs[0]
    graph.operators = graph.operators[:count]
    graph.outputs = np.asarray(graph.operators[-1].outputs, dtype=np.int32)
    model_table.signatureDefs, model_table.metadata = None, None
    builder = flatbuffers.Builder(len(model) + 65536)
    builder.Finish(model_table.Pack(builder), file_identifier=b"TFL3")
    return bytes(builder.Output())
