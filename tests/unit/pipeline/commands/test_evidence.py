"""`doit evidence`: the files that it writes, and what --check reports."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from pipeline.api import run_recipe
from pipeline.commands.dispatch import run
from pipeline.commands.evidence import write
from stages.backends.toolchain.compiler import run_command
from tests.support import exports
from tests.support.gdb_servers import needs_gdb, qemu
from tests.support.optional import needs

RECIPE = """\
target: cortex-m4
model: {file: net.tflite}
stages: {tensorize: {count: off}, simulate: {inputs: {files: ["inputs/*.npy"], random: 1}}}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with a model file and an input. cppcheck is missing, which makes the tests quick."""
    import numpy as np

    project = exports.project(tmp_path / "mine", {"small": RECIPE}).root
    monkeypatch.chdir(project)
    alone = {"schema": 1, "name": "alone", "target": "host", "model": exports.CONV}
    made = run_recipe(alone, until="import", store=exports._store())
    shutil.copy(made.artifacts["import"] / "model.tflite", project / "net.tflite")
    (project / "net.tflite").chmod(0o644)
    (project / "inputs").mkdir()
    np.save(project / "inputs/first.npy", np.zeros((1, 6, 6, 4), np.int8))
    monkeypatch.setenv("FIRMLINE_STORE", str(exports._store()))
    monkeypatch.setattr(write.misra, "CPPCHECK", "cppcheck-that-is-missing")
    monkeypatch.setattr(write, "install_debian", lambda packages: False)
    return project


def test_evidence_of_a_release(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["evidence", "small", "target=cortex-m4", "--check"]) == 1
    error = capsys.readouterr().err
    assert "there is no evidence in build/small/cortex-m4/evidence" in error
    assert "`doit evidence small target=cortex-m4` writes it" in error
    assert run(["evidence", "small", "--json"]) == 3
    result = json.loads(capsys.readouterr().out)
    rows = {row["about"]: row for row in result["evidence"]}
    assert [about for about, row in rows.items() if not row["holds"]] == ["MISRA C:2012"]
    assert "cppcheck is missing" in rows["MISRA C:2012"]["result"]
    place = folder / "build/small/cortex-m4"
    stack = json.loads((place / "evidence/stack.json").read_text())
    bounds = {row["root"]: row["bytes"] for row in stack["roots"]}
    assert stack["holds"] and 0 < bounds["model_run"] < bounds["main"] and stack["measured"] <= bounds["main"]
    assert json.loads((place / "evidence/rebuild.json").read_text())["different"] == []
    assert "<a href='evidence/sbom.cdx.json'>" in (place / "report.html").read_text()
    _check_documents(place)
    _check_differences(folder, place, capsys)
    documents = {name: (place / "evidence" / name).read_bytes() for name in (write.SBOM, write.PROVENANCE)}
    assert run(["evidence", "small"]) == 3
    (place / "evidence" / write.SBOM).unlink()
    assert run(["evidence", "small", "--check"]) == 3
    assert f"evidence/{write.SBOM}: missing" in capsys.readouterr().out
    (place / "evidence" / write.INDEX).write_text("[]")
    (place / "evidence" / write.SBOM).write_text("{}")
    assert run(["evidence", "small", "--check"]) == 1
    assert "is damaged" in capsys.readouterr().err
    assert run(["evidence", "small"]) == 3
    assert documents == {name: (place / "evidence" / name).read_bytes() for name in documents}


@pytest.mark.parametrize("target", ["cortex-m4", "rv32-scalar", "rv64-rvp"])
def test_other_inputs_take_no_more_instructions_than_the_bound(folder: Path, target: str) -> None:
    """The bound is of a run on zeros."""
    assert run(["evidence", "small", f"target={target}", "set=stages.simulate.inputs.random=0", "--json"]) == 3
    bounds = json.loads((folder / f"build/small/{target}/evidence/instructions.json").read_text())
    assert bounds["holds"] and not bounds["unbounded"]
    inputs = "stages.simulate.inputs."
    changes = {"target": target, "set": f"{inputs}random=12,{inputs}seed=7,{inputs}files=[]"}
    made = run_recipe("small", changes, until="simulate")
    counts = json.loads((made.artifacts["simulate"] / "counts.json").read_text())
    assert max(inference["total"] for inference in counts["inferences"]) <= bounds["total"]["bound"]
    for row in bounds["layers"]:
        assert (
            max(each["layers"][row["index"]] for each in counts["inferences"]) <= row["bound"] < 2 * row["most"] + 300
        )


@needs_gdb
@needs("pygdbmi", "hardware")
def test_the_report_of_a_board_is_evidence(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """QEMU's GDB server stands for the board. The report stays evidence until the sources change."""

    def row(*words: str, about: str = "run on a board") -> str:
        run(["evidence", "small", *words, "--json"])
        rows = json.loads(capsys.readouterr().out)["evidence"]
        return str(next((row["result"] for row in rows if row["about"] == about), ""))

    saved = folder / "build/small/cortex-m4/evidence/on_board.json"
    with qemu("mps2-an386", folder) as (place, _):
        assert re.fullmatch(r"[\d,]+ to [\d,]+ ticks over 4 inferences", row(f"run_on={place}", about="instructions"))
        result = row(f"run_on={place}")
    assert f"in QEMU at {place}, ticks by SysTick" in result and " 0 mismatches in " in result
    report = json.loads(saved.read_text())
    assert report["ran"]["place"] == place and report["instructions"]["total"] > 0
    index = json.loads((saved.parent / write.INDEX).read_text())
    assert {"on_board.json", "on_board.html"} <= index["files"].keys()
    # The report is also that of a simulated release with the same sources.
    assert row() == result and json.loads(saved.read_text()) == report
    assert row("set=stages.emit.prefix=other") == "not saved: sources changed since the run in on_board/"
    assert not saved.exists()


def test_the_rebuild_is_on_another_day(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Code with a date has other bytes then, unless the user fixes the date."""
    (tmp_path / "date.c").write_text("const char date[] = __DATE__;\n")

    def date() -> str:
        return run_command(["gcc", "-S", "-o", "-", str(tmp_path / "date.c")], "date.c")

    monkeypatch.delenv("SOURCE_DATE_EPOCH", raising=False)
    first = date()
    with write.another_day():
        assert date() != first and "1970" in date()
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "86400000")
    first = date()
    with write.another_day():
        assert date() == first


def _check_documents(place: Path) -> None:
    sbom = json.loads((place / "evidence/sbom.cdx.json").read_text())
    statement = json.loads((place / "evidence/provenance.intoto.json").read_text())
    (network,) = [part for part in sbom["components"] if part["type"] == "machine-learning-model"]
    parameters = network["modelCard"]["modelParameters"]
    assert parameters["inputs"] == [{"format": "int8[1,6,6,4]"}]
    assert parameters["datasets"] == [{"ref": "data:inputs/first.npy"}]
    libraries = {part["name"]: part for part in sbom["components"] if part["bom-ref"].startswith("library ")}
    assert libraries["newlib"]["scope"] == "required" and "memcpy" in str(libraries["newlib"]["properties"])
    assert "COPYING.NEWLIB" in str(libraries["newlib"]["licenses"]) and libraries["newlib"]["components"]
    assert libraries["libgcc"]["licenses"] == [{"expression": "GPL-3.0-or-later WITH GCC-exception-3.1"}]
    assert all(part["version"] for part in libraries.values())
    if shutil.which("dpkg-query"):
        assert libraries["newlib"]["purl"].startswith("pkg:deb/")
    dependencies: list[dict[str, Any]] = statement["predicate"]["buildDefinition"]["resolvedDependencies"]
    named = {entry["name"]: entry for entry in dependencies}
    assert named["tool compiler"]["digest"] and named["tool compiler"]["annotations"]["version"]
    assert {entry["uri"] for entry in dependencies if "uri" in entry} == {
        "recipes/small.yaml",
        "net.tflite",
        "inputs/first.npy",
    }
    assert str(Path.home()) not in json.dumps([sbom, statement]) and str(place) not in json.dumps([sbom, statement])


def _check_differences(folder: Path, place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Change each kind of file in turn; --check names it."""
    assert run(["evidence", "small", "--check"]) == 0
    assert "files are those of the evidence" in capsys.readouterr().out
    for path, shown in (
        (place / "firmware.elf", "firmware.elf: changed"),
        (place / "src/model.c", "src/model.c: changed"),
        (folder / "net.tflite", "(net.tflite): changed"),
        (folder / "inputs/first.npy", "(inputs/first.npy): changed"),
        (place / "evidence/stack.json", "evidence/stack.json: changed"),
    ):
        content = path.read_bytes()
        path.write_bytes(content + b"\0")
        assert run(["evidence", "small", "--check"]) == 3
        lines = capsys.readouterr().out.splitlines()
        assert len(lines) == 2 and shown in lines[1]
        path.write_bytes(content)
    (place / "src/more.c").write_text("")
    assert run(["evidence", "small", "--check"]) == 3
    assert "src/more.c: not in the evidence" in capsys.readouterr().out
    (place / "src/more.c").unlink()
