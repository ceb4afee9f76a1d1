"""Convert an ONNX file to a TFLite file of the same network.

    load          parse and check the file, fix shapes, inline functions
    values        values of names: tensor views with an axis order, constants
    fold          evaluate operators on constants
    operators     translate all other operators, one module per group
    convert       the whole conversion

The rest of the import reads the TFLite file. ONNX networks are NCHW and state scales at each operator; TFLite files
are NHWC and state scales at tensors. The reference is ONNX Runtime (stages.ir.reference.onnx_runtime), not LiteRT.
"""

from stages.import_model.onnx.convert import Converted, convert

__all__ = ["Converted", "convert"]
