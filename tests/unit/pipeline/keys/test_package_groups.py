"""Commands that run recipes ask for a missing group of Python packages as `doit run` does."""

import json
import re
from pathlib import Path

import pytest

from pipeline.commands import explain
from pipeline.commands.exit_codes import PENDING
from pipeline.errors import ToolError
from pipeline.keys import package_groups, tools
from stages.support.system.installation import INSTALLATION as ROOT


@pytest.mark.parametrize("as_json", [False, True])
def test_commands_without_a_run_report_missing_packages(
    as_json: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A dry run installs nothing, and knows the versions, and so the keys, from the lock file."""
    package_state = tools._package_state
    missing = ("ai-edge-quantizer", "onnx", "onnxruntime")
    monkeypatch.setattr(tools, "_package_state", lambda name: [] if name in missing else package_state(name))
    monkeypatch.setattr(package_groups, "_bootstrapped", lambda: True)
    monkeypatch.setattr(package_groups, "install_group", lambda group: pytest.fail("it installs"))
    monkeypatch.setenv("FIRMLINE_STORE", str(tmp_path / "store"))
    (recipe,) = explain.print_explanations(["digits_onnx_ptq"], as_json=as_json)
    assert explain.exit_code([recipe]) == PENDING and recipe.stages[0].key
    versions = dict(re.findall(r"^(\S+)==(\S+)", (ROOT / "constraints.txt").read_text(), re.MULTILINE))
    expected = [
        {"package": package, "version": versions[package], "group": group}
        for package, group in zip(missing, ("ptq", "onnx", "onnx"), strict=True)
    ]
    output = capsys.readouterr().out
    if as_json:
        assert json.loads(output)[0]["installs"] == expected
    else:
        assert output.count("installs first: Python package") == len(expected)
        assert f"installs first: Python package onnx {versions['onnx']} (group onnx)" in output
    monkeypatch.setattr(package_groups, "_bootstrapped", lambda: False)  # a run installs nothing there
    with pytest.raises(ToolError, match="Python package ai-edge-quantizer is not installed\ninstall it: pip install"):
        explain.print_explanations(["digits_onnx_ptq"])


def test_only_models_with_signal_operators_need_tflm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its version is in the key of verify; without the package a run says how to install it."""
    package_state = tools._package_state
    monkeypatch.setattr(tools, "_package_state", lambda name: [] if name == "tflite-micro" else package_state(name))
    monkeypatch.setattr(package_groups, "_bootstrapped", lambda: True)
    monkeypatch.setenv("FIRMLINE_STORE", str(tmp_path / "store"))
    explain.print_explanations(["wake_word", "kws_cortex_m4"])
    version = package_groups.locked_version("tflite-micro")
    assert version and capsys.readouterr().out.count(f"tflite-micro {version} (group audio)") == 1
    monkeypatch.setattr(package_groups, "_bootstrapped", lambda: False)
    message = r"tflite-micro is not installed; .*\ninstall it: pip install .firmline\[audio\]"
    with pytest.raises(ToolError, match=message):
        explain.print_explanations(["wake_word"])
