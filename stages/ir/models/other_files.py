"""Recognition of other file formats by their first bytes."""

import re

from stages.support.messages.stage_error import StageError

FILE = ("model", "file")  # path in a recipe
_INCOMPLETE = "Check that the download or export is complete."
# First bytes of other formats, or those after four bytes.
_OTHERS = {
    b"ET12": "a program of ExecuTorch",
    b"GGUF": "a GGUF file of llama.cpp",
    b"LDMK": "a kmodel, compiled for a Kendryte KPU",
    b"RKNN": "an RKNN file, compiled for a Rockchip NPU",
    b"\x01HEF": "a HEF file, compiled for a Hailo NPU",
    b"\x80\x02": "a pickle of Python's, as PyTorch's older files are",
}
# The version of the format, one byte, then a producer's name or another field of a ModelProto (onnx.proto).
_ONNX = re.compile(rb"\x08[\x01-\x20][\x12\x1a\x22\x28\x32\x3a\x42]", re.DOTALL)
_C_SOURCE = re.compile(
    rb"//|/\*|#(?:include|if|define|pragma)|(?:(?:static|extern|alignas\(\d+\)) )*(?:const|unsigned) "
)


def advice(data: bytes, *, wanted: str) -> str:
    """Return advice about a file that is not `wanted`, `tflite` or `onnx`."""
    start = data[:512].lstrip(b"\xef\xbb\xbf \t\r\n")
    if wanted != "tflite" and data[4:8] == b"TFL3":
        return "It is a TFLite file: its name should end in .tflite."
    if start.startswith(b"version https://git-lfs"):
        return "It is a pointer of Git LFS: `git lfs pull` brings the file."
    if start.startswith(b"<"):
        return "It is a page of HTML or XML: download the file itself."
    if data.startswith(b"\x89HDF"):
        return "It is an HDF5 file, as Keras writes them: convert it to TFLite."
    for mark, what in _OTHERS.items():
        if data.startswith(mark) or data[4:].startswith(mark):
            return f"It is {what}: convert the model it was made of to TFLite or ONNX."
    if data.startswith(b"\x1f\x8b"):
        return "It is a gzip archive: unpack it first."
    if _C_SOURCE.match(start):
        return "It is C source: the file that it was made of is needed."
    if data.startswith(b"PK"):
        return "It is a zip archive, as those of Keras and PyTorch are: convert the model to TFLite or ONNX."
    if wanted != "onnx" and _ONNX.match(data):
        return "It begins as an ONNX file does: the name of one should end in .onnx."
    return _INCOMPLETE


def not_onnx(data: bytes, name: str) -> StageError:
    """Return the error for a file `name` that is not an ONNX model."""
    message = f"{name} is not an ONNX file, or has no operators ({len(data):,} bytes)"
    return StageError(message, hint=advice(data, wanted="onnx"), at=FILE)


def check_onnx(data: bytes, name: str) -> None:
    """Raise StageError for a file of another known format, without the ONNX package."""
    if not data or advice(data, wanted="onnx") != _INCOMPLETE:
        raise not_onnx(data, name)
