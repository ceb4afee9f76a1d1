"""Drawn networks in three forms: some of what `python -m tests.onnx_networks` draws."""

import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

from tests.onnx_networks import FORMS, check


@pytest.mark.parametrize("form", FORMS)
def test_drawn_networks_are_onnx_runtimes(form: str) -> None:
    assert sum(check(seed, form)["layers"] for seed in range(200, 206)) > 30
