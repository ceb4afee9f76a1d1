"""`--conformance-kernels` selects the tests that hold the named kernels, or is an error of its own."""

from __future__ import annotations

import pytest


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves out groups without a named kernel. Raises UsageError for unknown names and where no case is left."""
    names = set(filter(None, config.getoption("--conformance-kernels").split(",")))
    if not names:
        return
    from stages.messages.wording import did_you_mean
    from tests.conformance.suite import kernels_of, rank
    from tests.conformance.targets import kernels, load_target, target_names

    known = sorted({name for target in target_names() for name in kernels(load_target(target))})
    for name in sorted(names - {*known}):
        raise pytest.UsageError(f"--conformance-kernels: no kernel '{name}'{did_you_mean(name, known)}")
    cases = [item for item in items if getattr(item, "originalname", "") in ("test_kernels", "test_meanings")]
    idle = []
    for item in cases:
        target, group = load_target(item.callspec.params["name"]), item.callspec.params["group"]
        held = [kernel for operator in group for kernel in kernels_of(target, operator) if kernel.name in names]
        if not any(item.originalname == "test_kernels" or rank(kernel, target) < 2 for kernel in held):
            idle.append(item)
    if cases and len(idle) == len(cases):
        raise pytest.UsageError(f"--conformance-kernels: no selected test has a case of {', '.join(sorted(names))}")
    config.hook.pytest_deselected(items=idle)
    items[:] = [item for item in items if item not in idle]
