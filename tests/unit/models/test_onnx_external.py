"""ONNX files with their constants in files beside them."""

import itertools
import re
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("onnx")

import numpy as np
import onnx

from stages.base import StageError
from stages.import_model.model_files import model_files
from stages.import_model.onnx import convert
from stages.ir.models.onnx_external import external_files, external_tensors, whole
from stages.ir.models.spec import FileModel
from tests.support.onnx_graphs import drawn, model, node


def written(folder: Path, location: str = "net.weights") -> Path:
    constants = {"w": drawn(1, 4, 3, 3, 3), "b": drawn(2, 4)}
    proto = model("y = Conv (x, w, b)", {"x": (1, 3, 8, 8)}, ["y"], constants)
    onnx.save(proto, folder / "net.onnx", save_as_external_data=True, location=location, size_threshold=0)
    return folder / "net.onnx"


def test_a_file_is_the_same_as_one_with_all_inside(tmp_path: Path) -> None:
    path = written(tmp_path)
    files = external_files(path)
    assert files == {"net.weights": tmp_path / "net.weights"}
    made = onnx.load_model_from_string(whole(path.read_bytes(), files, "net.onnx"))
    assert [onnx.numpy_helper.to_array(one).tolist() for one in made.graph.initializer] == [
        drawn(1, 4, 3, 3, 3).tolist(),
        drawn(2, 4).tolist(),
    ]


def test_files_that_are_missing_or_too_short(tmp_path: Path) -> None:
    path = written(tmp_path)
    data, files = path.read_bytes(), external_files(path)
    files["net.weights"].write_bytes(files["net.weights"].read_bytes()[:20])
    with pytest.raises(StageError, match=r"net.onnx has the constant 'w' in 'net.weights', which is too short"):
        whole(data, files, "net.onnx")
    files["net.weights"].unlink()
    with pytest.raises(StageError, match=r"net.onnx has the constant 'w' in 'net.weights': No such file"):
        whole(data, files, "net.onnx")


def test_a_file_that_is_not_there_is_named_when_the_recipe_is_read(tmp_path: Path) -> None:
    path = written(tmp_path)
    (tmp_path / "net.weights").unlink()
    with pytest.raises(StageError, match=r"net.onnx has constants in 'net.weights', which is missing") as told:
        external_files(path)
    assert told.value.at == ("model", "file") and "onnx.save" in told.value.hint


def outside(name: str, content: float) -> onnx.TensorProto:
    """A tensor of one float32 that is in the file `name`."""
    made = onnx.TensorProto(dims=[1], data_type=1, name=name, data_location=onnx.TensorProto.EXTERNAL)
    made.external_data.add(key="location", value=name)
    Path(name).write_bytes(np.float32(content).tobytes())
    return made


def everywhere() -> onnx.ModelProto:
    """A file with external data in every place that onnx.proto has for a tensor, each in a file of its own."""
    names = (f"{number}.bin" for number in itertools.count())

    def one() -> onnx.TensorProto:
        return outside(name := next(names), float(name.partition(".")[0]))

    def sparse() -> onnx.SparseTensorProto:
        return onnx.SparseTensorProto(dims=[4], values=one(), indices=one())

    def graph(*nodes: onnx.NodeProto) -> onnx.GraphProto:
        return onnx.GraphProto(node=nodes, initializer=[one()], sparse_initializer=[sparse()])

    def operator(**attributes: Any) -> onnx.NodeProto:
        return onnx.NodeProto(op_type="Any", attribute=[onnx.AttributeProto(name="a", **attributes)])

    made = onnx.ModelProto(ir_version=10)
    values = [operator(t=one()), operator(tensors=[one()]), operator(sparse_tensor=sparse())]
    inner = graph(operator(sparse_tensors=[sparse()]))
    made.graph.CopyFrom(graph(*values, operator(g=inner), operator(graphs=[graph()])))
    defaults = [onnx.AttributeProto(name="d", t=one())]
    made.functions.add(name="f", node=[operator(t=one())], attribute_proto=defaults)
    made.training_info.add(initialization=graph(), algorithm=graph())
    return made


def test_external_data_is_found_wherever_a_tensor_may_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    proto = everywhere()
    Path("net.onnx").write_bytes(proto.SerializeToString())
    tensors = list(external_tensors(proto))
    files = external_files(tmp_path / "net.onnx")
    assert len(tensors) == 23 and set(files) == {one.name for one in tensors}
    monkeypatch.chdir("/")  # nothing is read from the current directory
    made = onnx.load_model_from_string(whole(proto.SerializeToString(), files, "net.onnx"))
    assert not list(external_tensors(made))
    node = made.functions[0].node[0].attribute[0].t
    assert onnx.numpy_helper.to_array(node) == float(node.name.partition(".")[0])


@pytest.mark.parametrize("location", ["../e.weights", "/etc/weights", "x/../weights", "", "we\nights"])
def test_names_that_lead_elsewhere(tmp_path: Path, location: str) -> None:
    path = written(tmp_path)
    proto = onnx.load(path, load_external_data=False)
    for tensor in external_tensors(proto):
        tensor.external_data[0].value = location
    path.write_bytes(proto.SerializeToString())
    shown = re.escape(location.replace("\n", "\\n"))
    with pytest.raises(StageError, match=rf"net.onnx has constants in '{shown}', which is not in its folder"):
        external_files(path)


def test_symbolic_links_out_of_the_folder(tmp_path: Path) -> None:
    folder = tmp_path / "net"
    folder.mkdir()
    path, data = written(folder), folder / "net.weights"
    data.rename(folder / "kept")
    data.symlink_to("kept")
    assert external_files(path) == {"net.weights": data}
    data.unlink()
    (folder / "kept").rename(tmp_path / "kept")
    for target in ("../kept", "net.weights"):
        data.symlink_to(target)
        with pytest.raises(StageError, match=r"constants in 'net.weights', a symbolic link out of its folder"):
            external_files(path)
        data.unlink()
    data.mkdir()
    with pytest.raises(StageError, match=r"constants in 'net.weights', which is missing"):
        external_files(path)


def test_a_constant_with_external_data_is_part_of_the_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    nodes = [node("Constant", [], ["k"], value=outside("k.bin", 3.0)), "y = Mul (x, k)"]
    proto = model(nodes, {"x": (1,)}, ["y"])
    with pytest.raises(StageError, match=r"(?s)net.onnx has 1 of its constants in another file: 'k.bin'.*onnx.save"):
        convert(proto.SerializeToString(), "net.onnx", {}, "nchw")  # as of a download: k.bin is not read
    (tmp_path / "nets").mkdir()
    (tmp_path / "nets" / "net.onnx").write_bytes(proto.SerializeToString())
    Path("k.bin").rename("nets/k.bin")
    files = model_files(FileModel(file="nets/net.onnx"), tmp_path)
    assert [path.name for path in files.values()] == ["net.onnx", "k.bin"]
