"""From an ONNX file to the TFLite file of the same network, which the rest of the import reads.

    load          the file as a graph: checked, of fixed shapes, functions in line
    values        what a name of that graph stands for: a tensor and the order of its axes, a constant
    fold          operators on constants alone
    operators     all others, by family
    convert       the whole

An ONNX network is NCHW and says its integers by scales at each operator; the TFLite file is NHWC and has the scales at
the tensors. ONNX Runtime is the judge of what it computes (stages.ir.reference.onnx_runtime), not LiteRT.
"""

from stages.import_model.onnx.convert import Converted, convert

__all__ = ["Converted", "convert"]
