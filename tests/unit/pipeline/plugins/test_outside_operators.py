"""Operators of plug-ins, as in docs/how-to/add_operator.md: known to all stages, and verified."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from pipeline.api import run_recipe
from pipeline.errors import PipelineError
from pipeline.plugins.registry import default_registry
from pipeline.project import Project
from pipeline.recipes.loader import load_recipe
from pipeline.runs.workspace import Workspace
from stages.base import StageError
from stages.ir.graph.layer_rules import LayerMatch
from stages.ir.models.builder import ModelBuilder
from stages.ir.models.spec import OpModel
from stages.ir.operators.table import OPERATORS, declare, kind_of, operator_of
from stages.layout.rules import Match
from tests.firmware.test_extend_page import BLOCK, CUSTOM, IN_TREE, NAMED
from tests.support.plugged import edit, with_operators, write

GATE = "plugins/operators/gate.py"
CORE = "schema: 1\ncores:\n  gated: {like: host, kernels: [gate, generic]}\n"


def page() -> dict[str, str]:
    """The files of the page's section on custom operators, and SIGN as a plug-in."""
    blocks_of_page = {}
    for section in (CUSTOM, IN_TREE):
        for language, text in BLOCK.findall(section):
            name = NAMED.match(text)
            if language in ("sh", "text") or name is None:
                continue
            if section is CUSTOM or name[1].endswith("/sign.py"):
                blocks_of_page[name[1].replace("stages/", "plugins/")] = text.partition("\n")[2]
    return blocks_of_page


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    for name, text in page().items():
        write(tmp_path, name, CORE if name.endswith("gated.yaml") else text)
    write(tmp_path, "pipeline.yaml", "schema: 1\n")
    yield with_operators(Project(tmp_path))
    declare(())


def network(threshold: float = 0.4) -> bytes:
    """A convolution, the gate twice, a fully connected layer, with traced tensors in between."""
    from flatbuffers import flexbuffers

    b, rng = ModelBuilder(), np.random.default_rng(4)
    y = b.input("x", (1, 5, 5, 3), "int8", 0.05, 3)
    y = b.conv2d(y, rng.integers(-127, 128, (4, 3, 3, 3)).astype(np.int8), weight_scale=0.01, out=(0.05, -7))
    for threshold_here in (threshold, 2 * threshold):
        options = bytes(flexbuffers.Dumps({"threshold": threshold_here}))
        y = b.emit("CUSTOM:Gate", [y], y.shape, None, "gate", custom=options)
    b.output(b.fully_connected(y, rng.integers(-127, 128, (6, 100)).astype(np.int8), weight_scale=0.01, out=(0.1, 2)))
    return b.build()


def run(project: Project, **model: Any) -> dict[str, Any]:
    recipe = {"schema": 1, "name": "x", "target": "gated", "model": model}
    report = run_recipe(recipe, root=project, build=project.root / "build", store=project.root / "store").report
    assert report is not None
    return report


def test_litert_judges_what_it_knows_and_the_plug_in_its_own(project: Project) -> None:
    (project.root / "net.tflite").write_bytes(network())
    report = run(project, file="net.tflite")
    assert [layer["kernel"] for layer in report["layers"]][1:3] == ["gate.row", "gate.row"]
    verified = report["verify"]
    assert verified["mismatches"] == 0 and verified["layers_checked"] == 4
    ours, theirs = verified["reference"].split(", ")
    assert ours.startswith("LiteRT ") and ours.endswith(" BUILTIN_REF for 2 of 4 operators")
    assert theirs == "plugins/operators/gate.py for 2 x CUSTOM:Gate"
    # A kernel that computes something else.
    edit(project, "plugins/kernels/gate/gate.c", "x[i] > threshold", "x[i] >= threshold")
    with pytest.raises(PipelineError, match=r"plugins/operators/gate\.py for 2 x CUSTOM:Gate") as error:
        run(project, file="net.tflite")
    assert "the first that differs is layer 1 (gate) 'gate'" in str(error.value)


def test_a_formula_that_is_not_the_reference_is_reported(project: Project) -> None:
    edit(project, GATE, "np.where(x > self.threshold, x, self.zero_point).astype(x.dtype)", "np.zeros(x.shape)")
    expected = r"fails: ValueError: layer gate: computed float64\[1, 4\], expected int8\[1, 4\]"
    with pytest.raises(PipelineError, match=rf"`compute` of layer 0 \(gate\) 'gate' {expected}"):
        run(project, op="gate", shape=[4], alpha=0.5, input={"scale": 0.05, "zero_point": -3})


def test_rules_and_models_know_the_operator_by_its_kind(project: Project) -> None:
    assert kind_of("CUSTOM:Gate") == "gate" and operator_of("gate") is OPERATORS["CUSTOM:Gate"]
    assert (Match(op="gate").op, LayerMatch(op="gate").op, OpModel(op="gate", shape=(4,)).op) == ("gate",) * 3
    for rule in (Match, LayerMatch):
        with pytest.raises(ValidationError, match="did you mean 'gate'"):
            rule(op="gat")
    with pytest.raises(ValidationError, match="gate has no option 'beta'; it has alpha"):
        OpModel(op="gate", shape=(4,), beta=2.0)
    declare(())
    with pytest.raises(ValidationError, match="no operator is called 'gate'"):
        Match(op="gate")


def test_without_the_plug_in_the_file_is_refused(project: Project) -> None:
    (project.root / "net.tflite").write_bytes(network())
    (project.root / GATE).unlink()
    write(project.root, "plugins/targets/gated.yaml", "schema: 1\ncores: {gated: {like: host}}\n")
    with_operators(project)
    with pytest.raises(
        PipelineError, match=r"operators 1 \(CUSTOM:Gate\)|a plug-in can \(docs/how-to/add_operator\.md\)"
    ):
        run(project, file="net.tflite")


def test_planning_imports_no_operator_and_has_their_bytes_in_the_keys(project: Project) -> None:
    recipe = {"schema": 1, "name": "x", "target": "host", "model": {"op": "relu", "shape": [8]}}
    keys = []
    for text in ("raise ValueError('imported')", "raise ValueError('other')"):
        (project.root / GATE).write_text(text)
        with Workspace(root=with_operators(project)) as workspace:
            plan = workspace.planner.plan(load_recipe(recipe, root=project, registry=default_registry()))
        keys.append({action.kind: action.ingredients.get("plug-in", {}).get("gate.py") for action in plan})
    assert not [name for name in sys.modules if name.endswith("operators.gate")]
    changed = {kind for kind, digest in keys[0].items() if digest != keys[1][kind]}
    assert {"import", "layout", "quantize", "tensorize", "emit", "verify"} <= changed
    assert "compile" not in changed
    with pytest.raises(PipelineError, match=r"plug-in plugins/operators/gate\.py:1: ValueError: other"):
        OPERATORS["CUSTOM:Gate"]


def test_a_plug_in_stage_that_imports_the_graph_has_the_operators_in_its_key(project: Project) -> None:
    write(
        project.root,
        "plugins/stages/number.py",
        """from stages.base import Stage, StageConfig
from stages.ir.graph import Graph


class Number(Stage):
    kind = "number"
    config = StageConfig
    consumes = ("quantize",)

    def run(self, job):
        (job.out / "layers.txt").write_text(str(len(Graph.load(job.inputs["quantize"]).layers)))


STAGE = Number()
""",
    )
    recipe = {
        "schema": 1,
        "name": "x",
        "target": "gated",
        "model": {"op": "gate", "shape": [4]},
        "stages": {"number": {"after": "quantize"}},
    }
    result = run_recipe(recipe, root=with_operators(project), store=project.root / "store", until="number")
    assert (result.artifacts["number"] / "layers.txt").read_text() == "1"


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ('    "CUSTOM:Gate"', '    "CONV_2D"', "declares CONV_2D ('conv2d' in rules), which Firmline declares too"),
        ('    "CUSTOM:Gate"', '    "GATE"', "GATE, which is not in TFLite's schema; custom"),
        ("        litert=LiteRT(reference=_reference),\n", "",
         "declares CUSTOM:Gate without a `reference`, which custom operators need"),
        ("(Gate,), _legalize,", "(Gate,),", "declares CUSTOM:Gate without `legalize`, which custom operators need"),
        ('types=("int8",)', 'types=("in8",)', "declares CUSTOM:Gate for the type 'in8'; did you mean 'int8'?"),
        ('op: Literal["gate"] = "gate"', 'op: Literal["conv2d"] = "conv2d"',
         "has a layer 'conv2d', which Firmline has too"),
        ('"acme.Gate"', '"com.microsoft.Gate"', "'com.microsoft.Gate', which needs a custom domain"),
        ("OPERATORS = (\n", "OPERATORS = 1, (\n",
         "has OPERATORS that are not a tuple of stages.ir.operators.declaration"),
    ],
)  # fmt: skip
def test_wrong_declarations_are_named_with_file_and_line(project: Project, old: str, new: str, expected: str) -> None:
    text = (project.root / GATE).read_text()
    edit(project, GATE, old, new)
    with pytest.raises(StageError) as error:
        OPERATORS["CUSTOM:Nobody"]
    line = text.splitlines().index("OPERATORS = (") + 1
    assert expected in str(error.value) and f"plug-in plugins/operators/gate.py:{line}: " in str(error.value)
