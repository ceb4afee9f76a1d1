"""Normalize a TFLite file: one graph, composites replaced, axes and shapes filled in.

TVM's front end, LiteRT and the import's description all read the normalized file. A file that needs no change stays
as it is, byte for byte.
"""

from stages.import_model.normalize.file import Normalized, normalized

__all__ = ["Normalized", "normalized"]
