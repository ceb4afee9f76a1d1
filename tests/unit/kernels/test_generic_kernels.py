"""Generic kernels: the structures they share with their C, and costs."""

from stages.backends.kernels.registry import kernels
from stages.backends.targets.load import load_target
from tests.conformance.draw import Draw
from tests.conformance.suite import each_operator, operator_modules

GENERIC = kernels(["generic"])


def test_every_kernel_states_a_cost() -> None:
    """Of some layer of each of its operators."""
    layers = [module.drawn(Draw(seed)) for module in operator_modules().values() for seed in range(10)]
    layers += each_operator()
    target = load_target("rv32-scalar")
    for kernel in GENERIC.values():
        costs = [kernel.cost(layer, kernel.params(), target) for layer in layers if kernel.is_for(layer.op)]
        assert costs and min(costs) > 0
