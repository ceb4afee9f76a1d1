"""The names of operators that a rule may give: all that quantize makes for kernels, and nothing else."""

from stages.graph.kinds import kernel_kinds
from stages.kernels import places, registry
from stages.kernels.generic import movement
from stages.operators.activations import Activation
from stages.operators.movement import KINDS
from stages.operators.table import OPERATORS, kind_of
from stages.quantize.patterns import FAMILIES, activations

# Operators that the integer graph has under the name of another.
LOWERED = {
    "EXPAND_DIMS": "reshape",
    "PADV2": "pad",
    "SPLIT_V": "split",
    "SPACE_TO_DEPTH": "transpose",
    "DEPTH_TO_SPACE": "transpose",
    "TRANSPOSE_CONV": "conv2d",
    "SPACE_TO_BATCH_ND": "transpose",
    "BATCH_TO_SPACE_ND": "transpose",
    "PACK": "concatenation",
    "UNPACK": "strided_slice",
    "SELECT_V2": "select",
    "FILL": "broadcast_to",
    "ONE_HOT": "select",
    "CONSTANT": "reshape",
}


def test_all_that_quantize_lowers_has_a_name_that_a_rule_may_give() -> None:
    kinds = {LOWERED.get(op, kind_of(op)) for op in FAMILIES}
    assert "conv2d" in kinds
    assert kinds - kernel_kinds() == set()


def test_all_that_kernels_are_for_has_a_name_that_a_rule_may_give() -> None:
    everything = registry.kernels(places.folder_names()).values()
    assert {op for kernel in everything for op in kernel.ops} - kernel_kinds() == set()


def test_moves_and_functions_are_those_that_are_implemented() -> None:
    assert set(movement.KINDS) == KINDS
    assert {kind_of(op) for op in activations.FAMILY} | {"requantize", "activation"} == Activation.names()


def test_what_is_declared_to_become_layers_does() -> None:
    assert {name for name, operator in OPERATORS.items() if operator.layers} == set(FAMILIES) - {"LAYOUT", "CONSTANT"}
