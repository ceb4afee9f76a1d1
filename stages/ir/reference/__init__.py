"""The reference: LiteRT's reference kernels, compared with every output byte of firmware.

    from stages.ir.reference import Reference

    reference = Reference(model_bytes)
    outputs = reference.run([image])              # list of arrays, in the order of the graph's outputs
    layer = reference.tensor(17)                  # any tensor of that run, by its number in the file

LiteRT's default kernels (XNNPACK and its optimized ones) round differently. This module selects BUILTIN_REF and is the
only place that creates an interpreter.
"""

from stages.ir.reference.interpreter import Reference, random_inputs, run
from stages.ir.reference.refusal import RunError

__all__ = ["Reference", "RunError", "random_inputs", "run"]
