"""Packages of pyproject.toml's optional groups: tests that want one skip, and say so, where it is not installed."""

from importlib.util import find_spec

import pytest


def needs(module: str, group: str) -> pytest.MarkDecorator:
    """Skips a test, or a module as its `pytestmark`, without the package of this name."""
    return pytest.mark.skipif(find_spec(module) is None, reason=f"needs the group {group}: ./bootstrap --with {group}")
