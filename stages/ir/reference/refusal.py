"""What LiteRT says when it refuses a model, or says no more because it ended, in terms of the model's operators."""

from __future__ import annotations

import re
from collections.abc import Callable
from signal import Signals

import numpy as np

from stages.ir.models.naming import named, sides
from stages.ir.models.tflite_reader import ModelInfo, OperatorInfo, TensorInfo
from stages.support.messages.operator_error import called
from stages.support.messages.stage_error import StageError
from stages.support.messages.wording import several

_NODE = re.compile(r"Node number (\d+) \(\w+\) failed to (?:prepare|invoke)\.?")
_PLACE = re.compile(r"\S*\.(?:cc|h):\d+ ")  # the line of LiteRT's source
_UNKNOWN = re.compile(r"Didn't find op for builtin opcode '(\w+)' version '(\d+)'")
_INDICES = (
    "Random inputs are no indices: give files with numbers inside of their axis, "
    "stages: {simulate: {inputs: {random: 0, extremes: false, files: [...]}}}."
)
# The two sides of a condition that does not hold: floats come out as other integers each time.
_PRINTED = re.compile(r"\s*\([-+.\w]+ [!=<>]+ [-+.\w]+\)$")
_ONE_SCALE = ("CONCATENATION", "PACK")
_HINT = "LiteRT gives the results that everything is verified with."


class RunError(StageError):
    """LiteRT refuses the model or its inputs."""


def refusal(info: ModelInfo, name: str, message: str) -> RunError:
    """The error for what LiteRT said, with the operator that it names; `name` is the model's."""
    said = " ".join(message.split())
    if "not a valid Flatbuffer" in said:
        return RunError(
            f"{name} is a corrupt TFLite file: LiteRT's check of it fails", hint="Export or download it again."
        )
    if unknown := _UNKNOWN.search(said):
        return _unknown(info, *unknown.groups())
    found = _NODE.search(said)
    reason = _PLACE.sub("", said[: found.start()] if found else said).strip(" .")
    if found is None or int(found[1]) >= len(info.operators):
        return RunError(f"LiteRT refuses {name}: {reason or 'it does not say why'}", hint=_HINT)
    operator = info.operators[int(found[1])]
    if "scale" in reason or "params.zero_point" in reason:
        return _scales(operator, info, _PRINTED.sub("", reason))
    who = called(operator.index, operator.op)
    return RunError(
        f"{who} is refused by LiteRT: {reason or 'it does not say why'}\n  {sides(operator, info)}",
        hint=_INDICES if "index out of bounds" in reason else _HINT,
    )


def _scales(operator: OperatorInfo, info: ModelInfo, condition: str) -> RunError:
    """The error for a condition on scales, which LiteRT prints as integers, with the scales that the file has."""
    given, gives = (
        several([_quantized(info.tensors[index]) for index in indices if index >= 0], 4)
        for indices in (operator.inputs, operator.outputs)
    )
    what = "takes one scale and zero point for all int8 tensors"
    if operator.op not in _ONE_SCALE:
        what = f"does not take these scales (LiteRT: {condition})"
    return RunError(
        f"{called(operator.index, operator.op)} {what}\n  {given} -> {gives}",
        hint=f"Quantize the model anew, or put a QUANTIZE before the operator. {_HINT}",
    )


def _quantized(tensor: TensorInfo) -> str:
    """`'x' (scale 0.5, zero point 3)`."""
    if not tensor.scale.size:
        return named(tensor)
    scales = str(tensor.scale[0]) if tensor.scale.size == 1 else f"{tensor.scale.min()} to {tensor.scale.max()}"
    ends = sorted({int(tensor.zero_point.min()), int(tensor.zero_point.max())})
    return f"{named(tensor)} (scale {scales}, zero point {' to '.join(map(str, ends))})"


def _unknown(info: ModelInfo, op: str, version: str) -> RunError:
    """LiteRT looks up all operators that the file lists, also those that are not used."""
    what = f"version {version} of {op}, which LiteRT does not know"
    operator = next((operator for operator in info.operators if operator.op == op), None)
    if operator is None:
        return RunError(f"the file lists {what}; no operator uses it", hint=_HINT)
    return RunError(f"{called(operator.index, operator.op)} is {what}\n  {sides(operator, info)}", hint=_HINT)


def death(info: ModelInfo, name: str, signal: int, operator: OperatorInfo | None, when: str) -> RunError:
    """The error for a LiteRT that ended with a signal `when` ("while it is loaded"), in `operator` if known."""
    ended = f"ends LiteRT with {Signals(signal).name} {when}"
    if operator is None:
        return RunError(f"{name} {ended}", hint=_HINT)
    return RunError(f"{called(operator.index, operator.op)} {ended}\n  {sides(operator, info)}", hint=_HINT)


def deadly_operator(model: bytes, info: ModelInfo, dies: Callable[[bytes], bool]) -> OperatorInfo | None:
    """The first operator with which LiteRT ends, when it ends with all of them; None when it lives without any change.

    `dies` tells whether it ends with a model: it is given models of the first operators only, some log2 of them.
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
    """The model with its first `count` operators; the outputs are those of the last of them."""
    import flatbuffers
    from ai_edge_litert import schema_py_generated as schema

    made = schema.ModelT.InitFromObj(schema.Model.GetRootAs(model, 0))
    graph = made.subgraphs[0]
    graph.operators = graph.operators[:count]
    graph.outputs = np.asarray(graph.operators[-1].outputs, dtype=np.int32)
    made.signatureDefs, made.metadata = None, None
    builder = flatbuffers.Builder(len(model) + 65536)
    builder.Finish(made.Pack(builder), file_identifier=b"TFL3")
    return bytes(builder.Output())
