"""Every command in a project that has plug-ins of every kind: each knows them."""

import json
import re
import shlex
import shutil
from pathlib import Path

import pytest

from pipeline.documents.pyproject import pyproject_table
from pipeline.plugins.discovery import KINDS
from stages.support.system.installation import INSTALLATION as ROOT
from tests.support.command_lines import Ended, run_all
from tests.support.plugged import write

_BLOCK = re.compile(r"^```\w*\n(?:# |/\* )(plugins/\S+)(?: \*/)?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SIMULATOR = """\
import subprocess

from stages.backends.simulators.process import Finished


class Plain:
    def tools(self, target):
        return ()

    def run(self, elf, target, folder, *, timeout, most_instructions, watch):
        done = subprocess.run([elf], cwd=folder, timeout=timeout, capture_output=True, text=True)
        return Finished(done.returncode, done.stdout + done.stderr)


SIMULATOR = Plain()
"""
TARGETS = """\
schema: 1
cores:
  plain: {like: host, kernels: [gate, generic], simulator: {kind: plain}}
boards:
  with-toy:
    core: rv32-rvp
    title: a core with the toy beside it
    memory:
      rom: {origin: "0x80000000", length: 4M}
      l1: {origin: "0x20000000", length: 64K, holds: [arena]}
      ram: {origin: "0x90000000", length: 1M, speed: 1}
    accelerator: {kind: toy, memory: l1, parameters: {macs_per_cycle: 32}}
"""
GATE = "schema: 1\ntarget: {}\nmodel: {{op: gate, shape: [6], alpha: 0.5}}\n"
# Exit code, and what is to be seen, of each command line; those of what measures on a target need its compiler.
LINES = {
    "targets": (0, "with-toy"),
    "boards with-toy": (0, "accelerator  toy"),
    "kernels": (0, "gate.row"),
    "kernels target=plain": (0, "gate.row"),
    "kernels nosuch": (1, "unknown kernel 'nosuch'"),
    "operators": (0, "CUSTOM:Gate"),
    "list": (0, "two_layers"),
    "doctor plain": (0, "plain  plain      works"),
    "explain checked": (0, "budget"),
    "run checked dry_run=1": (3, "budget"),
    "run gated target=plain": (0, "plugins/operators/gate.py for 1 x CUSTOM:Gate"),
    "compare gated@plain gated@plain": (0, "gate.row"),
    "export": (0, "bazel"),
    "export gated target=plain as=bazel": (0, "first: bazel test"),
    "tune gated --check": (0, "doit tune is ignored"),
    "calibrate target=gated": (0, "doit calibrate is ignored"),
    "search gated": (1, "does not quantize"),
    "fit recipe=gated with-toy": (0, "with-toy"),
    "weights gated model=zoo:two_layers": (1, "weights: caller"),
    "evidence gated target=plain --check": (1, "there is no evidence in build/gated/plain"),
    "watch gate": (1, "did you mean 'gated'"),
    "graph gated": (0, "gated"),
    "open gated target=plain": (0, "gated"),
    "matrix-json": (0, '"gated"'),
    "schema": (0, "recipe.schema.json"),
    "store": (0, "artifacts"),
    "gc --days 9 --json": (0, '"artifacts": 0'),
    "bench --check": (1, "in a clone of Firmline"),
    "init inner": (0, "inner"),
    "new recipe more model=zoo:two_layers target=plain": (0, "recipes/more.yaml"),
    "new recipe other 'layer={op: gate, shape: [4]}' target=plain": (0, "recipes/other.yaml"),
    "completion words kernels ga": (0, "gate\n"),
    "completion words run model=zoo:two": (0, "model=zoo:two_layers"),
    "completion words run checked:": (0, "checked:budget"),
    "completion words export gated as=b": (0, "as=bazel"),
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    for page in ("add_operator", "add_model", "add_stage", "export"):
        for name, text in _BLOCK.findall((ROOT / f"docs/how-to/{page}.md").read_text(encoding="utf-8")):
            write(folder, name, text)
    shutil.copytree(ROOT / "tests/support/toy", folder / "plugins/accelerators/toy")
    write(folder, "plugins/simulators/plain.py", SIMULATOR)
    write(folder, "plugins/targets/plain.yaml", TARGETS)
    write(folder, "pipeline.yaml", "schema: 1\n")
    write(folder, "recipes/gated.yaml", GATE.format("gated"))
    two = "schema: 1\ntarget: gated\nmodel: {zoo: two_layers}\nstages: {budget: {after: import, limits: macs.yaml}}\n"
    write(folder, "macs.yaml", "rv32-scalar: 9\n")
    write(folder, "recipes/checked.yaml", two)
    return folder


def wrong(ended: Ended, code: int, message: str) -> str:
    """'' when a command ended as it should."""
    text = ended.stdout + ended.stderr
    if ended.code == code and message in text and "Traceback" not in text:
        if code != 1 and "--json" in ended.words:
            json.loads(ended.stdout)
        return ""
    return f"{' '.join(ended.words)}: {ended.code}\n{text[-1500:]}"


@pytest.mark.skipif(shutil.which("riscv64-unknown-elf-gcc") is None, reason="needs riscv64-unknown-elf-gcc on PATH")
def test_every_command_knows_the_plug_ins(project: Path) -> None:
    assert {path.name for path in (project / "plugins").iterdir()} == set(KINDS)
    assert {line.split()[0] for line in LINES} >= set(pyproject_table("tool", "doit", "plugins", "command"))
    results = run_all([shlex.split(line) for line in LINES], project.parent, project)
    failed = [wrong(ended, *expected) for ended, expected in zip(results, LINES.values(), strict=True)]
    assert not any(failed), "\n".join(filter(None, failed))
