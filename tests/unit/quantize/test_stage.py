"""The files that the stage quantize writes."""

from pathlib import Path

from stages.ir.graph import Graph
from stages.ir.models.builder import ModelBuilder
from tests.support.stages_run import run_stages


def quantize(data: bytes, folder: Path) -> tuple[Path, Graph]:
    artifact = run_stages(data, "host", folder / "artifacts", until="quantize")["quantize"]
    return artifact, Graph.load(artifact)


def network(dtype: str) -> bytes:
    quantized = dtype != "float32"
    builder = ModelBuilder()
    x = builder.input("x", (1, 4, 4, 2), dtype, *((0.1, 0) if quantized else ()))
    y = builder.relu(x, name="first")
    y = builder.reshape(y, (1, 32), name="flat")
    builder.output(builder.logistic(y, name="second"))
    return builder.build()


def test_an_integer_model_has_no_float_functions(tmp_path: Path) -> None:
    folder, graph = quantize(network("int8"), tmp_path)
    assert sorted(path.name for path in folder.iterdir()) == ["constants.npz", "graph.json"]
    assert [(layer.kind, layer.name, layer.tflite_op) for layer in graph.layers] == [
        ("relu", "first", (0, "RELU")),
        ("reshape", "flat", (1, "RESHAPE")),
        ("logistic", "second", (2, "LOGISTIC")),
    ]
    assert graph.tensors["flat"].alias_of == "first"
    assert graph.tensors["second"].quant is not None
    assert graph.tensors["second"].quant.scale == (1 / 256,)
    assert (graph.inputs, graph.outputs) == (["x"], ["second"])


def test_a_float_model_keeps_its_relax_functions(tmp_path: Path) -> None:
    from tvm import ir

    folder, graph = quantize(network("float32"), tmp_path)
    functions = ir.load_json((folder / "float.json").read_text())
    named = [layer.op.function for layer in graph.layers if layer.op.op == "float"]
    assert [layer.kind for layer in graph.layers] == ["relu", "reshape", "logistic"]
    assert sorted(var.name_hint for var in functions.get_global_vars()) == sorted(named)


def test_names_that_repeat_stay_apart(tmp_path: Path) -> None:
    """TFLite identifies tensors by number; names may be empty or occur twice."""
    builder = ModelBuilder()
    x = builder.input("x", (1, 4), "int8", 0.1, 0)
    first = builder.relu(x, name="same")
    builder._names.clear()  # the builder would number the second one
    builder.output(builder.tanh(first, name="same"))
    _, graph = quantize(builder.build(), tmp_path)
    assert list(graph.tensors) == ["x", "same", "same#2"]
    assert [(layer.kind, layer.inputs) for layer in graph.layers] == [("relu", ("x",)), ("tanh", ("same",))]
