"""What to say of operators that cannot be imported.

TVM's converter knows some 200 operators, but float arithmetic on quantized integers is one result of asking for the
wrong one. Those of stages.operators are converted as quantize(op(dequantize(x))), move integers without looking at
them, or are refused unless they are float.
"""

from __future__ import annotations

from stages.operators.declaration import CUSTOM

_CONTROL_FLOW = frozenset({"CALL", "IF", "STABLEHLO_CASE", "STABLEHLO_IF", "STABLEHLO_WHILE", "WHILE"})
_STATE = frozenset({
    "ASSIGN_VARIABLE", "CALL_ONCE", "HASHTABLE", "HASHTABLE_FIND", "HASHTABLE_IMPORT", "HASHTABLE_SIZE",
    "READ_VARIABLE", "VAR_HANDLE",
})  # fmt: skip


def why_not(op: str) -> str:
    """What to say of an operator that is not among these: `is control flow, which is not supported`."""
    if op in _CONTROL_FLOW:
        return "is control flow, which is not supported"
    if op in _STATE:
        return "keeps state from one inference to the next, which is not supported"
    if op.startswith(CUSTOM):
        return "is a custom operator: the file does not say what it computes, a plug-in can (docs/extend.md)"
    return "is not supported"
