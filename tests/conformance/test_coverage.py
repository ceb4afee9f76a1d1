"""The suite holds every kernel to something of everything: no kernel, class of cases, mode or parameter is left out."""

from typing import get_args

import pytest

from stages.backends.kernels import places, registry
from stages.ir.operators.table import layers
from tests.conformance.coverage import lacking, unused_parameters
from tests.conformance.outside import not_drawn
from tests.conformance.suite import all_parameters, kernels_of, operator_modules, rank, takes_some, trials
from tests.conformance.targets import PROJECT, kernels, load_target, project_operators, target_names

# Of each module of operators: what every kernel must have been held to on its first target.
ALWAYS = {
    "add": ("ties", "tails", "zero points", "extremes", "shifts"),
    "batch_matmul": ("ties", "tails", "zero points", "extremes", "shifts"),
    "batch_matmul16": ("ties", "tails", "extremes", "shifts"),
    "binary": ("all pairs", "extremes", "zero points"),
    "choices": ("extremes",),
    "conv2d": ("ties", "tails", "zero points", "extremes", "shifts"),
    "depthwise_conv2d": ("ties", "tails", "zero points", "extremes", "shifts"),
    "elementwise": ("extremes",),
    "fully_connected": ("ties", "tails", "zero points", "extremes", "shifts"),
    "functions16": ("extremes",),
    "interpolation": ("extremes", "shapes", "ties"),
    "log_mel": ("extremes",),
    "lstm": ("tails", "extremes"),
    "lstm16": ("tails", "extremes"),
    "movement": ("tails",),
    "picking": ("extremes",),
    "pool2d": ("extremes", "zero points"),
    "reductions": ("extremes",),
    "signal": ("shapes", "extremes"),
    "signal_memory": ("shapes", "extremes"),
    "sixteen": ("extremes",),
    "svdf": ("tails", "extremes"),
    "variables": ("tails", "extremes"),
}
FIRST = [
    (kernel.name, name, operator)
    for name in target_names()
    for operator in operator_modules()
    for kernel in kernels_of(load_target(name), operator)
    if rank(kernel, load_target(name)) == 0
]
every_kernel = pytest.mark.parametrize(("kernel", "name", "operator"), FIRST, ids=[first[0] for first in FIRST])


def test_every_kernel_of_every_folder_runs() -> None:
    wanted = {name for core in target_names() for name in kernels(load_target(core))}
    assert {first[0] for first in FIRST} == wanted
    assert PROJECT or wanted == set(registry.kernels(places.folder_names()))


def test_every_operator_has_cases() -> None:
    """All of the graph's operators but float, which TVM lowers; of a project's own those that a kernel computes."""
    outside = project_operators()
    assert not_drawn(outside) == ""
    classes = [*layers(), *(layer for operator in outside.values() for layer in operator.legalization.layers)]
    known = {name for cls in classes for name in get_args(cls.model_fields["op"].annotation)}
    modules = operator_modules()
    assert {op for module in modules.values() for op in module.OPS} == known - {"float"}
    assert set(ALWAYS) | {operator.kind for operator in outside.values()} == set(modules)


@every_kernel
def test_a_kernel_takes_cases_of_every_class(kernel: str, name: str, operator: str) -> None:
    target = load_target(name)
    assert lacking(kernels(target)[kernel], target, operator, ALWAYS.get(operator, ("shapes",))) == []


@pytest.mark.parametrize(
    ("kernel", "name", "operator"),
    [first for first in FIRST if len(all_parameters(kernels(load_target(first[1]))[first[0]])) > 1],
    ids=lambda value: str(value),
)
def test_every_value_of_a_parameter_is_used(kernel: str, name: str, operator: str) -> None:
    target = load_target(name)
    assert unused_parameters(kernels(target)[kernel], target, operator) == []


@pytest.mark.parametrize("name", target_names())
def test_a_kernel_takes_some_cases_on_every_target(name: str) -> None:
    target = load_target(name)
    for operator in operator_modules():
        idle = [kernel.name for kernel in kernels_of(target, operator) if not takes_some(kernel, target, operator)]
        assert idle == [], f"these take no mandatory case of {operator}"


def test_kernels_that_may_work_in_place_do() -> None:
    for kernel, name, operator in FIRST:
        chosen = kernels(load_target(name))[kernel]
        if chosen.in_place:
            planned = [trial for trial in trials(load_target(name), operator, 0, 0) if trial.kernel.name == kernel]
            overlaid = {trial.overlay for trial in planned} - {None}
            assert overlaid == set(range(max(len(trial.case.view.inputs) for trial in planned)))
