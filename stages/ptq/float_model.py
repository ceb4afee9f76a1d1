"""Prepare the float network for quantization: one normalized graph in float32."""

from dataclasses import dataclass

from stages.base import StageError
from stages.import_model.normalize import normalized
from stages.ir.model_info import ModelInfo
from stages.ir.models.sources import ModelSource
from stages.ir.models.spec import FileModel, UrlModel, is_onnx
from stages.ir.models.tflite_reader import read
from stages.ir.reference.probe import check_loads
from stages.ptq.constants import narrow_constants, with_float_constants
from stages.support.messages import escape
from stages.support.messages.wording import several

# Types in a float network: data, shapes, indices, conditions.
_ALLOWED_TYPES = ("float32", "int32", "int64", "bool")


@dataclass(frozen=True)
class FloatModel:
    """A TFLite file of one float32 graph; `notes` are sentences about changes."""

    data: bytes
    info: ModelInfo
    notes: tuple[str, ...]


def float_model(model: ModelSource, data: bytes, name: str) -> FloatModel:
    """Return the recipe's model in the file `data`, as a normalized float32 TFLite file.

    Raises StageError for a file that is corrupt, refused by LiteRT, or not a float network.
    """
    if is_onnx(model):
        from stages.import_model.onnx import convert

        assert isinstance(model, FileModel | UrlModel)
        data = convert(
            data, escape.name(name, 200), model.shapes or {}, model.layout or "nchw", model.constants, model.states
        ).data
        _check_variables(read(data, name), name)
    normalized_model = normalized(data, name, getattr(model, "signature", None))
    check_float(normalized_model.info, name)
    data, info, notes = normalized_model.data, normalized_model.info, normalized_model.notes
    integer_constants = narrow_constants(info)
    if integer_constants:
        data = with_float_constants(data, info)
        info = read(data, name)
        notes = (*notes, f"{len(integer_constants)} integer constants of the file are dequantized before quantization")
    check_loads(data, info, name)
    return FloatModel(data, info, notes)


def _check_variables(info: ModelInfo, name: str) -> None:
    """Raise StageError for an ONNX network with recurrent operators or states.

    The quantizer does not support their variables.
    """
    if any(tensor.variable for tensor in info.tensors):
        raise StageError(
            f"`mode: calibrate` does not quantize {name}: it has an LSTM, GRU or RNN, or `states`",
            hint="Quantize the file with onnxruntime.quantization (QDQ), which leaves these operators in float32.",
        )


def check_float(info: ModelInfo, name: str) -> None:
    """Raise StageError unless all tensors are float32, except shapes, indices and constants.

    Files may be quantized in part.
    """
    name = escape.name(name, 200)
    constants = {tensor.index for tensor in narrow_constants(info)}
    foreign = [
        tensor
        for tensor in info.tensors
        if tensor.index not in constants and (tensor.scale.size or tensor.dtype not in _ALLOWED_TYPES)
    ]
    if foreign:
        named = several([f"{tensor.index} {escape.quoted(tensor.name)}: {tensor.dtype}" for tensor in foreign])
        raise StageError(
            f"{name} is not a float32 network: {len(foreign)} of its {len(info.tensors)} tensors have other types\n"
            f"({named})",
            hint="use mode: prequantized for a quantized file; calibrate needs the float32 network",
            at=("stages", "quantize", "mode"),
        )
    for index in info.inputs:
        tensor = info.tensors[index]
        if tensor.dtype != "float32":
            raise StageError(
                f"{name}: input {escape.quoted(tensor.name)} is {tensor.dtype}; calibrate takes float32 inputs",
                at=("stages", "quantize", "mode"),
            )
