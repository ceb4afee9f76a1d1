"""The meaning of the integer graph in numpy: what every kernel is tested against.

Written from the arithmetic, not from the kernels, and itself held against LiteRT's reference kernels by the tests.
Arrays are in logical order (NHWC for images) whatever the layout of a tensor in memory.
"""

from stages.reference.integer.run import run_graph, run_layer, to_logical, to_physical

__all__ = ["run_graph", "run_layer", "to_logical", "to_physical"]
