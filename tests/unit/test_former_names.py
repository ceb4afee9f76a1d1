"""Plug-ins that import modules by their former names get the modules of today."""

from __future__ import annotations

import importlib

import pytest

from stages import former_names
from stages.base import Stage

FORMER = [*former_names._NAMES]


@pytest.mark.parametrize("name", FORMER)
def test_a_former_name_is_the_module_of_today(name: str) -> None:
    current = importlib.import_module(former_names.current_name(name))
    spec = current.__spec__
    with pytest.warns(DeprecationWarning, match="is now stages"):
        importlib.invalidate_caches()
        assert importlib.import_module(name) is current
    assert current.__spec__ is spec


def test_other_names_are_left_alone() -> None:
    assert former_names.current_name("stages.quantize.stage") == "stages.quantize.stage"
    with pytest.raises(ModuleNotFoundError, match="no_such"):
        importlib.import_module("stages.backends.kernels.no_such")


def test_a_stage_with_the_former_name_of_its_preflight_check_is_checked() -> None:
    class Old(Stage):  # type: ignore[type-arg]
        def foresee(self, *arguments: object) -> None:
            raise RuntimeError("no")

        def run(self, job: object) -> None: ...

    with pytest.raises(RuntimeError, match="no"):
        Old().preflight(None, None, None, None, {})  # type: ignore[arg-type]
