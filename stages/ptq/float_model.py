"""The float network as it is quantized: one graph, everything said, and nothing quantized in it yet."""

from __future__ import annotations

from dataclasses import dataclass

from stages.base import StageError
from stages.import_model.normalize import normalized
from stages.ir.models.spec import FileModel, ModelSource, UrlModel, is_onnx
from stages.ir.models.tflite_reader import ModelInfo, read
from stages.ir.reference.probe import check_loads
from stages.ptq.constants import narrow_constants, with_float_constants
from stages.support.messages import escape
from stages.support.messages.wording import several

# What computes beside float32 in a float network: shapes, indices, conditions.
_OTHERS = ("float32", "int32", "int64", "bool")


@dataclass(frozen=True)
class FloatModel:
    """A TFLite file of one graph in float32; `notes` are sentences on what was changed in it."""

    data: bytes
    info: ModelInfo
    notes: tuple[str, ...]


def float_model(model: ModelSource, data: bytes, name: str) -> FloatModel:
    """The recipe's model, whose file is `data`: the graph of its signature, or of an ONNX file the same in TFLite.

    Raises StageError for what is corrupt, refused by LiteRT, or no float network.
    """
    if is_onnx(model):
        from stages.import_model.onnx import convert

        assert isinstance(model, FileModel | UrlModel)
        data = convert(data, escape.name(name, 200), model.shapes or {}, model.layout or "nchw").data
    made = normalized(data, name, getattr(model, "signature", None))
    check_float(made.info, name)
    data, info, notes = made.data, made.info, made.notes
    narrow = narrow_constants(info)
    if narrow:
        data = with_float_constants(data, info)
        info = read(data, name)
        notes = (
            *notes,
            f"{len(narrow)} constants are integers in the file: quantized is what they stand for",
        )
    check_loads(data, info, name)
    return FloatModel(data, info, notes)


def check_float(info: ModelInfo, name: str) -> None:
    """Raises StageError unless all is float32 but for shapes, indices and constants: files may be quantized in part."""
    name = escape.name(name, 200)
    constants = {tensor.index for tensor in narrow_constants(info)}
    foreign = [
        tensor
        for tensor in info.tensors
        if tensor.index not in constants and (tensor.scale.size or tensor.dtype not in _OTHERS)
    ]
    if foreign:
        named = several([f"{tensor.index} {escape.quoted(tensor.name)}: {tensor.dtype}" for tensor in foreign])
        raise StageError(
            f"{name} is no float32 network: {len(foreign)} of its {len(info.tensors)} tensors are of other types\n"
            f"({named})",
            hint="mode: prequantized runs a quantized file as it is; calibrate needs it as it was trained",
            at=("stages", "quantize", "mode"),
        )
    for index in info.inputs:
        tensor = info.tensors[index]
        if tensor.dtype != "float32":
            raise StageError(
                f"{name}: input {escape.quoted(tensor.name)} is {tensor.dtype}; calibrate takes float32 inputs",
                at=("stages", "quantize", "mode"),
            )
