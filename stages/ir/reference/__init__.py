"""The oracle: LiteRT's reference kernels, which every output byte of the firmware is compared with.

    from stages.ir.reference import Reference

    oracle = Reference(model_bytes)
    outputs = oracle.run([image])                 # list of arrays, in the order of the graph's outputs
    layer = oracle.tensor(17)                     # any tensor of that run, by its number in the file

LiteRT's default path (XNNPACK, and its optimized kernels) rounds differently from its reference kernels, so this
module pins the resolver to BUILTIN_REF and is the only place that creates an interpreter.
"""

from stages.ir.reference.interpreter import Reference, random_inputs, run
from stages.ir.reference.refusal import RunError

__all__ = ["Reference", "RunError", "random_inputs", "run"]
