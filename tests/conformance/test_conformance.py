"""Every kernel of every family against the reference, and the TIR that states its meaning.

See docs/reference/kernels.md.
"""

import shutil
from collections.abc import Sequence

import pytest

from stages.backends.targets.spec import Target
from tests.conformance.coverage import uncalled
from tests.conformance.outside import formula_is_reference, models
from tests.conformance.runner import Outcome, run
from tests.conformance.suite import groups, kernels_of, meanings, rank, trials
from tests.conformance.targets import load_target, project_operators, target_names

SHOWN = 12
PLACES = [(name, group) for name in target_names() for group in groups(load_target(name))]
MEANT = [
    (name, group)
    for name, group in PLACES
    if any(
        not k.calls and rank(k, load_target(name)) < 2
        for operator in group
        for k in kernels_of(load_target(name), operator)
    )
]


def ids(places: Sequence[tuple[str, tuple[str, ...]]]) -> list[str]:
    return [f"{name}-{'+'.join(group)}" for name, group in places]


def equipped(name: str) -> Target:
    """The target, or a skip where its compiler or simulator is not installed."""
    target = load_target(name)
    commands = [target.compiler.command, *([target.simulator.command] if target.simulator.command else [])]
    missing = [command for command in commands if shutil.which(command) is None]
    if missing:
        pytest.skip(f"{', '.join(missing)} not installed")
    return target


def check(outcomes: Sequence[Outcome], target: Target) -> None:
    wrong = [f"{outcome.trial}: {outcome.wrong}" for outcome in outcomes if outcome.wrong]
    assert not wrong, "\n".join([f"{len(wrong)} of {len(outcomes)} are wrong on {target.name}", *wrong[:SHOWN]])


@pytest.fixture
def drawn(request: pytest.FixtureRequest) -> tuple[int, int]:
    """Seed and number of the drawn cases of each operator."""
    return request.config.getoption("--conformance-seed"), request.config.getoption("--conformance-cases")


@pytest.fixture
def only(request: pytest.FixtureRequest) -> frozenset[str]:
    """Names of the kernels that are held to the suite; none for all."""
    return frozenset(filter(None, request.config.getoption("--conformance-kernels").split(",")))


@pytest.mark.parametrize(("name", "group"), PLACES, ids=ids(PLACES))
def test_kernels(name: str, group: tuple[str, ...], drawn: tuple[int, int], only: frozenset[str], every: int) -> None:
    """All functions of the kernels are called as well, where all cases run."""
    target = equipped(name)
    outcomes = run([trial for operator in group for trial in trials(target, operator, *drawn, only, every)], target)
    check(outcomes, target)
    assert only or every > 1 or uncalled(outcomes, target) == [], "no case calls these functions"


@pytest.mark.parametrize(("name", "group"), MEANT, ids=ids(MEANT))
def test_meanings(name: str, group: tuple[str, ...], drawn: tuple[int, int], only: frozenset[str], every: int) -> None:
    """The workloads without micro-kernels, on the machine that builds and under its sanitizers."""
    target = load_target(name)
    alone = [trial for operator in group for trial in meanings(target, operator, *drawn, only, every)]
    check(run(alone, target, equipped("host")), target)


@pytest.mark.skipif(not project_operators(), reason="no operators of a project")
def test_formulas_of_a_project_are_its_references() -> None:
    """What `legalize` makes of a file computes what the operator's `reference`, or LiteRT, says of it."""
    found = [formula_is_reference(model) for name in project_operators() for model in models(name)]
    assert [wrong for wrong in found if wrong][:SHOWN] == []
