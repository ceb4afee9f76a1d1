"""Which tests of the suite run: those of named kernels, all, or those where a kernel has its first target."""

import pytest

from tests.conformance.suite import kernels_of, rank
from tests.conformance.targets import PROJECT, kernels, load_target, target_names

# One case in so many runs without --all. Of a project's own kernels all run: there are few, and they are new.
SHARE = 1 if PROJECT else 120


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves out the rest. Raises UsageError for unknown names and where no case of the named kernels is left."""
    names = set(filter(None, config.getoption("--conformance-kernels").split(",")))
    if config.getoption("--all") and not names:
        return
    if names:
        _refuse_unknown(names)
    cases = [item for item in items if getattr(item, "originalname", "") in ("test_kernels", "test_meanings")]
    idle = {id(item) for item in cases if not (_holds(item, names) if names else _is_first(item))}
    if names and cases and len(idle) == len(cases):
        raise pytest.UsageError(f"--conformance-kernels: no selected test has a case of {', '.join(sorted(names))}")
    config.hook.pytest_deselected(items=[item for item in items if id(item) in idle])
    items[:] = [item for item in items if id(item) not in idle]


def _refuse_unknown(names: set[str]) -> None:
    from stages.support.messages.wording import did_you_mean

    known = sorted({name for target in target_names() for name in kernels(load_target(target))})
    for name in sorted(names - {*known}):
        raise pytest.UsageError(f"--conformance-kernels: no kernel '{name}'{did_you_mean(name, known)}")


def _holds(item: pytest.Item, names: set[str]) -> bool:
    """Whether the test has cases of a named kernel; a kernel's meaning is held on its first targets alone."""
    ranks = [rank for name, rank in _ranks(item) if name in names]
    return bool(ranks) and (item.originalname == "test_kernels" or min(ranks) < 2)


def _is_first(item: pytest.Item) -> bool:
    return item.originalname == "test_kernels" and min(rank for _, rank in _ranks(item)) == 0


def _ranks(item: pytest.Item) -> list[tuple[str, int]]:
    target, group = load_target(item.callspec.params["name"]), item.callspec.params["group"]
    kernels = [kernel for operator in group for kernel in kernels_of(target, operator)]
    if item.originalname == "test_meanings":
        kernels = [kernel for kernel in kernels if not kernel.calls]
    return [(kernel.name, rank(kernel, target)) for kernel in kernels]


@pytest.fixture
def every(every: int) -> int:
    """One case in so many of each class."""
    return SHARE if every > 1 else 1
