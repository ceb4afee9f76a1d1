"""Packages of pyproject.toml's optional groups: a test that needs a missing one is skipped with the reason."""

import re
from importlib.util import find_spec

import pytest

# Modules that tests, or what they run, import.
_GROUPS = {
    "ai_edge_quantizer": "ptq",
    "onnx": "onnx",
    "onnxruntime": "onnx",
    "pygdbmi": "hardware",
    "tflite_micro": "audio",
    "zensical": "docs",
    "fsspec": "remote",
    "s3fs": "remote",
    "gcsfs": "remote",
    "paramiko": "remote",
    "distributed": "dask",
    "playwright": "browser",
    "wsgidav": "servers",
    "cheroot": "servers",
    "moto": "servers",
    "flask": "servers",
}
_MISSING = re.compile(r"(?:No module named|could not import) '(\w+)")
_ADVICE = re.compile(r"--with ([a-z]+)|firmline\[([a-z]+)\]")  # as the product's messages name a missing group


def needs(module: str, group: str) -> pytest.MarkDecorator:
    """Skips a test, or a module as its `pytestmark`, without the package of this name."""
    return pytest.mark.skipif(find_spec(module) is None, reason=_reason(group))


def why_skipped(error: str) -> str:
    """Return the reason to skip a test that failed with this text; '' if no missing group is to blame."""
    groups = {_GROUPS.get(module) for module in _MISSING.findall(error)}
    groups |= {first or second for first, second in _ADVICE.findall(error)}
    missing = {group for module, group in _GROUPS.items() if find_spec(module) is None}
    return _reason(min(groups & missing)) if groups & missing else ""


def _reason(group: str) -> str:
    return f"needs the group {group}: ./bootstrap --with {group} pytest"
