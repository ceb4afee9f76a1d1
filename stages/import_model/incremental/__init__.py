"""Rewrite a network over a window of time so that each run gets only the new frames.

Rows of the window are state, in the form of Keras' streaming networks: READ_VARIABLE,
CONCATENATION with the new rows, STRIDED_SLICE, ASSIGN_VARIABLE. Each output equals the output of the original network
on the whole window, byte for byte. Before the first frame the window holds zeros.
"""

from stages.import_model.incremental.rewrite import Incremental, incremental

__all__ = ["Incremental", "incremental"]
