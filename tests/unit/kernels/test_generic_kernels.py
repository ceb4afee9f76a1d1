"""Generic kernels: the structures they share with their C, and costs."""

from __future__ import annotations

import re
from importlib import import_module

from stages.kernels.registry import kernels
from stages.kernels.structure import Structure
from stages.targets.load import load_target
from tests.conformance.draw import Draw
from tests.conformance.suite import each_operator, operator_modules

GENERIC = kernels(["generic"])


def test_structures_have_the_fields_of_the_headers() -> None:
    folder = GENERIC["generic.conv2d"].folder.path
    found = {}
    for header in folder.glob("*.h"):
        # Of a name without the prefix are those that C keeps for itself: of rows, registers and sums.
        for name, body in re.findall(r"struct (fl_\w+) \{(.*?)\};", header.read_text(), re.DOTALL):
            assert set(re.findall(r"\b\w+_t\b", body)) == {"int32_t"}, name
            found[name] = tuple(re.findall(r"\w+(?=[,;])", body))
    modules = [import_module(f"stages.kernels.generic.{path.stem}") for path in folder.glob("*.py")]
    stated = {v.name: v.fields for module in modules for v in vars(module).values() if isinstance(v, Structure)}
    assert len(found) >= 8
    assert found == stated


def test_every_kernel_states_a_cost() -> None:
    """Of some layer of each of its operators."""
    layers = [module.drawn(Draw(seed)) for module in operator_modules().values() for seed in range(30)]
    layers += each_operator()
    target = load_target("rv32-scalar")
    for kernel in GENERIC.values():
        costs = [kernel.cost(layer, kernel.params(), target) for layer in layers if kernel.is_for(layer.op)]
        assert costs and min(costs) > 0
