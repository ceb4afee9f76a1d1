"""Stage import: TFLite or ONNX file to a Relax module with one function per operator."""

from stages.import_model.stage import STAGE

__all__ = ["STAGE"]
