"""Messages for operators that cannot be imported.

TVM's converter knows about 200 operators, but computes some of them in float on quantized integers. Import accepts
the operators of stages.ir.operators: as quantize(op(dequantize(x))), as data movement, or in float32 only.
"""

from stages.ir.model_info import ModelInfo, OperatorInfo
from stages.ir.naming import tensor_names
from stages.ir.operators.declaration import CUSTOM
from stages.support.messages.operator_error import OperatorError

_CONTROL_FLOW = frozenset({"CALL", "IF", "STABLEHLO_CASE", "STABLEHLO_IF", "STABLEHLO_WHILE", "WHILE"})
_STATE = frozenset({
    "ASSIGN_VARIABLE", "CALL_ONCE", "HASHTABLE", "HASHTABLE_FIND", "HASHTABLE_IMPORT", "HASHTABLE_SIZE",
    "READ_VARIABLE", "VAR_HANDLE",
})  # fmt: skip


_RANDOM = frozenset({"MULTINOMIAL", "RANDOM_STANDARD_NORMAL", "RANDOM_UNIFORM"})


def has_effects(op: str) -> bool:
    """Return whether an operator has control flow, state or randomness."""
    return op in _CONTROL_FLOW | _STATE | _RANDOM or op.startswith("STABLEHLO_")


LOOP = (
    "Unroll the loop (unroll=True in Keras' recurrent layers), or export its body as a separate model and run it "
    "in a loop in your code."
)
BRANCH = "Export each branch as a separate model and choose in your code, or compute both and use SELECT."
_FIXED = "Export the model with fixed shapes: import then computes the results of this operator."
_HINTS = {
    **dict.fromkeys(("BROADCAST_ARGS", "RANGE", "RANK", "SHAPE", "ZEROS_LIKE"), _FIXED),
    "IF": BRANCH,
    "STABLEHLO_CASE": BRANCH,
    "STABLEHLO_IF": BRANCH,
    "STABLEHLO_WHILE": LOOP,
    "WHILE": LOOP,
    f"{CUSTOM}TFLite_Detection_PostProcess": (
        "Export the detector without post-processing (boxes and scores as outputs) and select the boxes in your "
        "code, or define the operator in a plug-in (docs/how-to/add_operator.md)."
    ),
}


def hint_for(op: str) -> str:
    """Return a hint for an unsupported operator; '' if there is none."""
    return _HINTS.get(op, "")


def unsupported_reason(op: str) -> str:
    """Return why an operator is not supported: `is control flow, which is not supported`."""
    if op in _CONTROL_FLOW:
        return "is control flow, which is not supported"
    if op in _STATE:
        return "keeps state from one inference to the next, which is not supported"
    if op.startswith(CUSTOM):
        return "is a custom operator, which the file does not define; a plug-in can (docs/how-to/add_operator.md)"
    return "is not supported"


def operator_error(operator: OperatorInfo, info: ModelInfo, what: str, hint: str = "") -> OperatorError:
    """Return the error `operator 3 (CONV_2D) WHAT`, with its tensor names on a second line."""
    name = info.tensors[operator.outputs[0]].name if operator.outputs else ""
    return OperatorError(operator.index, operator.op, name, what, tensor_names(operator, info), hint=hint)
