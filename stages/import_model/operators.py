"""What to say of operators that cannot be imported.

TVM's converter knows some 200 operators, but float arithmetic on quantized integers is one result of asking for the
wrong one. Those of stages.ir.operators are converted as quantize(op(dequantize(x))), move integers without looking at
them, or are refused unless they are float.
"""

from __future__ import annotations

from stages.ir.operators.declaration import CUSTOM

_CONTROL_FLOW = frozenset({"CALL", "IF", "STABLEHLO_CASE", "STABLEHLO_IF", "STABLEHLO_WHILE", "WHILE"})
_STATE = frozenset({
    "ASSIGN_VARIABLE", "CALL_ONCE", "HASHTABLE", "HASHTABLE_FIND", "HASHTABLE_IMPORT", "HASHTABLE_SIZE",
    "READ_VARIABLE", "VAR_HANDLE",
})  # fmt: skip


_RANDOM = frozenset({"MULTINOMIAL", "RANDOM_STANDARD_NORMAL", "RANDOM_UNIFORM"})


def has_effects(op: str) -> bool:
    """Whether an operator does more than compute its results from its inputs."""
    return op in _CONTROL_FLOW | _STATE | _RANDOM or op.startswith("STABLEHLO_")


LOOP = (
    "Export the steps of the loop one after the other (unroll=True of Keras' recurrent layers), or the body as a "
    "model of its own that your code runs in a loop."
)
BRANCH = "Export each branch as a model of its own, between which your code chooses, or compute both and SELECT."
_FIXED = "Export the model with fixed shapes: what follows from them is computed when the model is imported."
_WHAT_TO_DO = {
    **dict.fromkeys(("BROADCAST_ARGS", "RANGE", "RANK", "SHAPE", "ZEROS_LIKE"), _FIXED),
    "IF": BRANCH,
    "STABLEHLO_CASE": BRANCH,
    "STABLEHLO_IF": BRANCH,
    "STABLEHLO_WHILE": LOOP,
    "WHILE": LOOP,
    f"{CUSTOM}TFLite_Detection_PostProcess": (
        "Export the detector without its post-processing (boxes and scores as outputs) and select the boxes in your "
        "code, or bring the operator as a plug-in (docs/how-to/add_operator.md)."
    ),
}


def what_to_do(op: str) -> str:
    """What helps with an operator that is not among these, '' where nothing is known."""
    return _WHAT_TO_DO.get(op, "")


def why_not(op: str) -> str:
    """What to say of an operator that is not among these: `is control flow, which is not supported`."""
    if op in _CONTROL_FLOW:
        return "is control flow, which is not supported"
    if op in _STATE:
        return "keeps state from one inference to the next, which is not supported"
    if op.startswith(CUSTOM):
        return (
            "is a custom operator: the file does not say what it computes, a plug-in can (docs/how-to/add_operator.md)"
        )
    return "is not supported"
