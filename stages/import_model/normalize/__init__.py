"""From a TFLite file as it came to one that says everything: one graph, composites resolved, axes and shapes given.

TVM's front end, LiteRT and the description of the import all read the file that comes out, so they agree. A file that
is already so is left as it is, byte for byte.
"""

from stages.import_model.normalize.file import Normalized, normalized

__all__ = ["Normalized", "normalized"]
