"""Names of operators in rules: exactly those that quantize writes for kernels."""

from stages.backends.kernels import places, registry
from stages.ir.graph.kinds import kernel_kinds
from stages.ir.operators.table import OPERATORS
from stages.quantize.patterns import PATTERNS


def test_all_that_kernels_are_for_has_a_name_that_a_rule_may_give() -> None:
    everything = registry.kernels(places.folder_names()).values()
    assert {op for kernel in everything for op in kernel.ops} - kernel_kinds() == set()


def test_what_is_declared_to_become_layers_does() -> None:
    assert {name for name, operator in OPERATORS.items() if operator.legalization.layers} == set(PATTERNS) - {
        "LAYOUT",
        "CONSTANT",
    }
