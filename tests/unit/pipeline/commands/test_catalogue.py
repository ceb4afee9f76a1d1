"""`doit targets`, `doit boards`, `doit kernels`, `doit operators`."""

import json
from typing import Any

import pytest
from doit import doit_cmd

from pipeline.commands.catalogue.kernels import Kernels
from pipeline.commands.catalogue.listing import Listing
from pipeline.commands.catalogue.operators import Operators
from pipeline.commands.catalogue.targets import Boards, Targets

Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def in_project(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doit_cmd, "_CMDLINE_VARS", {})


def listed(command: type[Listing], *named: str, capsys: Capture) -> list[dict[str, Any]]:
    assert command().execute({"json": True}, list(named)) == 0
    records: list[dict[str, Any]] = json.loads(capsys.readouterr().out)
    return records


def test_a_timing_model_is_named_with_its_source(capsys: Capture) -> None:
    bare, board = listed(Targets, "rv64-rvp", "nucleo-f446re", capsys=capsys)
    assert board["timing"] == "cortex-m4" and board["timing_source"].startswith("Arm Cortex-M4 Technical Reference")
    assert board["flash"].startswith("5 wait states in rom") and "RM0390" in board["flash_source"]
    assert bare["timing"] is None and "timing_source" not in bare and "flash" not in bare


def test_kernels_of_an_operator_on_a_target(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    monkeypatch.setattr(doit_cmd, "_CMDLINE_VARS", {"target": "cortex-m0plus"})
    names = {record["name"] for record in listed(Kernels, "conv2d", capsys=capsys)}
    assert "generic.conv2d" in names and all(name.startswith("generic.") for name in names)


def test_operators_by_either_name(capsys: Capture) -> None:
    assert listed(Operators, "conv2d", capsys=capsys) == listed(Operators, "Conv_2D", capsys=capsys)
    (record,) = listed(Operators, "conv2d", capsys=capsys)
    assert (record["name"], record["int8"], record["float32"]) == ("CONV_2D", "exact", "float")


@pytest.mark.parametrize(
    ("command", "word", "message"),
    [
        (Targets, "cortex-m3", "unknown target 'cortex-m3'; did you mean 'cortex-m33'?"),
        (Boards, "cortex-m4", "unknown board 'cortex-m4'"),
        (Operators, "CONV_4D", "unknown operator 'CONV_4D'"),
        (Operators, "lstmm", "unknown operator 'lstmm'; did you mean 'lstm'?\n`doit operators` lists them"),
        (Kernels, "rvp.gem_s8", "did you mean 'rvp.gemm_s8'?\n`doit kernels` lists them"),
    ],
)
def test_what_there_is_not(command: type[Listing], word: str, message: str, capsys: Capture) -> None:
    assert command().execute({"json": False}, [word]) == 1
    assert message in capsys.readouterr().err


def test_the_options_of_a_layer_are_listed(capsys: Capture) -> None:
    conv, lstm, switch = (
        listed(Operators, name, capsys=capsys)[0]["options"] for name in ("conv2d", "lstm", "CONCATENATION")
    )
    assert conv["out_channels"] == "integer, required" and conv["kernel"] == "[integer, integer], by default [1, 1]"
    assert conv["padding"] == "same | valid, by default same" and "parts" not in conv and "parts" in switch
    assert lstm["shape"] == "[integer, …], required" and "uint8" not in lstm["dtype"]
    assert Operators().execute({"json": False}, ["conv2d"]) == 0
    assert "out_channels: integer, required" in capsys.readouterr().out
