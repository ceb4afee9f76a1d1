"""Generic kernels: the structures they share with their C, and costs."""

from pathlib import Path

import pytest

from stages.backends.kernels.registry import kernels
from stages.backends.kernels.structure import Structure
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


def test_a_structure_has_the_fields_of_its_header(tmp_path: Path) -> None:
    header = tmp_path / "add.h"
    header.write_text("struct fl_add {\n    int32_t rows, step; /* int32_t x; */\n    int32_t low; // high\n};\n")
    assert Structure.of_header("fl_add", str(tmp_path / "add.py"), "add.h").fields == ("rows", "step", "low")
    header.write_text("struct fl_add { int8_t rows; };\nstruct other { int32_t a; };\n")
    with pytest.raises(LookupError, match="declares no `struct fl_add`"):
        Structure.of_header("fl_add", str(tmp_path / "add.py"), "add.h")
