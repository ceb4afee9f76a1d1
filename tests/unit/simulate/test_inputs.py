"""The inputs of a run: what is drawn, what is read from files, and what is refused."""

import os
from pathlib import Path

import numpy as np
import pytest
from pydantic import ValidationError

from stages.base import StageError
from stages.simulate import InputsConfig
from stages.simulate.inputs import check_files, external_files, make_inputs

INT8 = {"name": "x", "dtype": "int8", "shape": [1, 4, 5], "bytes": 20}
UINT8 = {**INT8, "dtype": "uint8"}
FLOAT = {**INT8, "dtype": "float32", "bytes": 80}
IDS = {**INT8, "name": "ids", "dtype": "int64", "bytes": 160, "range": [-20, 19]}


def arrays(config: InputsConfig, port: dict, files: dict[str, Path] | None = None) -> list[np.ndarray]:
    made = make_inputs(config, [port], files or {})
    return [np.frombuffer(one.data, port["dtype"]).reshape(port["shape"]) for one in made]


def test_order_is_random_then_extremes_then_files(tmp_path):
    (tmp_path / "a.bin").write_bytes(bytes(range(20)))
    np.save(tmp_path / "b.npy", np.arange(40, dtype=np.int8).reshape(2, 4, 5))
    files = {name: tmp_path / name for name in ("a.bin", "b.npy")}
    made = make_inputs(InputsConfig(random=2, files=tuple(files)), [INT8], files)
    assert [one.name for one in made] == [
        "random input 0 of seed 1",
        "random input 1 of seed 1",
        "all minimum",
        "all maximum",
        "a.bin",
        "b.npy[0]",
        "b.npy[1]",
    ]
    assert made[-3].data == bytes(range(20))
    assert made[-1].data == bytes(range(20, 40))


@pytest.mark.parametrize(
    ("port", "low", "high"),
    [
        (INT8, -128, 127),
        (UINT8, 0, 255),
        (FLOAT, -1.0, 1.0),
        (IDS, -20, 19),
        ({**INT8, "range": (0, 1000)}, 0, 127),
        ({**FLOAT, "range": (0, 9)}, 0, 9),
    ],
    ids=["int8", "uint8", "float32", "indices", "indices in bytes", "indices as floats"],
)
def test_extremes_are_the_ends_of_the_range_and_random_fills_it(port, low, high):
    wide = {**port, "shape": [5000], "bytes": 5000 * np.dtype(port["dtype"]).itemsize}
    drawn, minimum, maximum = arrays(InputsConfig(random=1), wide)
    assert np.all(minimum == low)
    assert np.all(maximum == high)
    assert low <= drawn.min() < low + (high - low) / 50
    assert high - (high - low) / 50 < drawn.max() <= high


def test_labels_go_to_the_inferences_from_files(tmp_path):
    np.save(tmp_path / "x.npy", np.zeros((2, 1, 4, 5), np.int8))
    np.save(tmp_path / "y.npy", np.array([7, 3]))
    config = InputsConfig(random=1, extremes=False, files=("x.npy",), labels="y.npy")
    made = make_inputs(config, [INT8], external_files(config, tmp_path))
    assert [one.label for one in made] == [None, 7, 3]


def test_globs_are_expanded_in_order_and_labels_are_files_too(tmp_path):
    for name in ("b.bin", "a.bin", "c.txt"):
        (tmp_path / name).write_bytes(b"")
    found = external_files(InputsConfig(files=("*.bin", "c.txt"), labels="y.npy"), tmp_path)
    assert list(found) == ["a.bin", "b.bin", "c.txt", "labels"]
    assert found["labels"] == tmp_path / "y.npy"
    absolute = external_files(InputsConfig(files=(f"{tmp_path}/*.bin",)), Path("/"))
    assert [path.name for path in absolute.values()] == ["a.bin", "b.bin"]


def test_glob_without_a_match_is_refused(tmp_path):
    with pytest.raises(StageError, match=r"no file matches \*\.bin"):
        external_files(InputsConfig(files=("*.bin",)), tmp_path)


def save(tmp_path: Path, array: np.ndarray) -> dict[str, Path]:
    np.save(tmp_path / "x.npy", array)
    return {"x.npy": tmp_path / "x.npy"}


def npy(shape: str, dtype: str = "'|i1'") -> bytes:
    header = f"{{'descr': {dtype}, 'fortran_order': False, 'shape': {shape}}}\n".encode()
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + bytes(20)


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("x.bin", b"123", r"has 3 bytes, one inference takes 20 \(x \[1, 4, 5\] int8\)"),
        ("x.bin", bytes(40), "has 40 bytes, one inference takes 20"),
        ("x.npy", b"nonsense", r"is not a \.npy file"),
        ("x.npy", b"\x93NUMPY", r"x\.npy: has an invalid \.npy header"),
        ("x.npy", npy("(True,)"), r"x\.npy: has an invalid \.npy header: the shape is \(True,\)"),
        ("x.npy", npy("(-1, 4, 5)"), r"x\.npy: has an invalid \.npy header: the shape is \(-1, 4, 5\)"),
        ("x.npy", npy(f"({2**62}, 4, 5)"), r"x\.npy: is cut short: .* takes 92,233,720,368,547,758,080 bytes"),
        ("x.npy", npy("(1, 4, 5)", "[('a', '<i4')]"), r"x\.npy: holds .* instead of numbers"),
        ("x.npy", npy("(1, 4, 5)", "'|O'"), r"x\.npy: holds Python objects instead of numbers"),
        ("x.png", bytes(20), r"x\.png ends in \.png; an input is a \.bin, \.npy or \.wav file"),
        ("x", bytes(20), "ends in nothing"),
    ],
)
def test_damaged_file_is_refused(tmp_path, name, content, told):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(StageError, match=told):
        make_inputs(InputsConfig(files=(name,)), [INT8], {name: tmp_path / name})


def test_a_file_is_measured_before_memory_is_taken(tmp_path):
    """The labels are a sparse file of 2 TB: they are mapped, and too many."""
    inputs, labels = tmp_path / "x.npy", tmp_path / "y.npy"
    inputs.write_bytes(npy(f"({2**45}, 4, 5)"))
    labels.write_bytes(npy(f"({2**38},)", "'<i8'"))
    os.truncate(labels, 2**41 + 200)
    with pytest.raises(StageError, match=r"x\.npy: is cut short"):
        make_inputs(InputsConfig(files=("x.npy",)), [INT8], {"x.npy": inputs})
    files = {**save(tmp_path, np.zeros((2, 4, 5), np.int8)), "labels": labels}
    with pytest.raises(StageError, match=r"y\.npy: \[274877906944\] int64 is not one integer class for each of the 2"):
        make_inputs(InputsConfig(files=("x.npy",), labels="y.npy"), [INT8], files)


def test_floats_for_a_quantized_input_become_its_integers(tmp_path):
    """Halves away from zero, as QUANTIZE; clamped to the type."""
    port = {"name": "x", "dtype": "int8", "shape": [1, 4], "bytes": 4, "scale": 0.5, "zero_point": 10}
    np.save(tmp_path / "a.npy", np.array([[0.0, 0.25, -0.25, 1e9], [1.0, -100.0, 0.2, 0.3]], np.float32))
    config = InputsConfig(random=0, extremes=False, files=("a.npy",))
    first, second = arrays(config, port, {"a.npy": tmp_path / "a.npy"})
    assert first.tolist() == [[10, 11, 9, 127]] and second.tolist() == [[12, -128, 10, 11]]
    np.save(tmp_path / "a.npy", np.array([[0.0, np.nan, 0.0, 0.0]], np.float32))
    with pytest.raises(StageError, match=r"a.npy: element \[0, 1\] is nan; inputs must be finite numbers \(1 of 4"):
        arrays(config, port, {"a.npy": tmp_path / "a.npy"})
    with pytest.raises(StageError, match="holds float32, the network's input x is int8"):
        arrays(config, {**port, "scale": None}, {"a.npy": tmp_path / "a.npy"})


def test_floats_in_bytes_for_an_integer_input(tmp_path):
    real = np.linspace(-1, 1, 20, dtype=np.float32)
    real.tofile(tmp_path / "a.bin")
    files, port = {"a.bin": tmp_path / "a.bin"}, {**INT8, "scale": 0.1, "zero_point": 0}
    with pytest.raises(StageError, match="has 80 bytes, one inference takes 20") as caught:
        arrays(InputsConfig(random=0, extremes=False, files=("a.bin",)), port, files)
    assert caught.value.hint == "if it holds float32, declare it: encoding: {dtype: float32}"
    config = InputsConfig(random=0, extremes=False, files=("a.bin",), encoding={"dtype": "float32"})
    check_files(config, files, [port], None)
    (given,) = arrays(config, port, files)
    np.testing.assert_array_equal(given.ravel(), np.rint(real * 10))
    with pytest.raises(ValidationError, match="needs `files`"):
        InputsConfig(encoding={"dtype": "float32"})


@pytest.mark.parametrize(
    ("dtype", "port", "hint"),
    [
        ("float64", FLOAT, "write it with array.astype(np.float32)"),
        ("float64", {**INT8, "scale": 0.5, "zero_point": 0}, "write it with array.astype(np.float32)"),
        ("int8", FLOAT, "declare how numbers are stored: encoding: {dtype: int8, scale: ..., zero_point: ...}"),
        ("int32", FLOAT, ""),
    ],
)
def test_an_array_of_another_type_is_refused_with_a_hint(tmp_path, dtype, port, hint):
    np.save(tmp_path / "a.npy", np.zeros((1, 4, 5), dtype))
    with pytest.raises(StageError, match=f"a.npy: holds {dtype}, the network's input x is {port['dtype']}") as caught:
        check_files(InputsConfig(files=("a.npy",)), {"a.npy": tmp_path / "a.npy"}, [port], None)
    assert caught.value.hint == hint


@pytest.mark.parametrize(
    ("array", "told"),
    [
        (np.zeros((2, 4, 5), np.uint8), "holds uint8, the network's input x is int8"),
        (np.zeros((2, 5, 4), np.int8), r"has shape \[2, 5, 4\], the network's input x is \[1, 4, 5\]"),
        (np.zeros((0, 4, 5), np.int8), "it holds no inference"),
    ],
)
def test_npy_that_does_not_fit_the_input_is_refused(tmp_path, array, told):
    with pytest.raises(StageError, match=told):
        make_inputs(InputsConfig(files=("x.npy",)), [INT8], save(tmp_path, array))


NOT_ONE_EACH = "is not one integer class for each of the 2 inferences"


@pytest.mark.parametrize(
    ("labels", "told"),
    [
        (np.zeros(3, np.int64), NOT_ONE_EACH),
        (np.zeros((2, 1), np.int64), NOT_ONE_EACH),
        (np.zeros(2, np.float32), NOT_ONE_EACH),
        (np.array([1, 10]), "label 10 of inference 1 is not a class: the network's first output has classes 0 to 9"),
        (np.array([-1, 3]), "label -1 of inference 0 is not a class"),
        (np.array([{}, {}]), "holds Python objects instead of numbers"),
    ],
)
def test_labels_that_are_no_classes_are_refused(tmp_path, labels, told):
    np.save(tmp_path / "y.npy", labels)
    files = {**save(tmp_path, np.zeros((2, 4, 5), np.int8)), "labels": tmp_path / "y.npy"}
    with pytest.raises(StageError, match=told) as raised:
        make_inputs(InputsConfig(files=("x.npy",), labels="y.npy"), [INT8], files, classes=10)
    assert "pickle" not in str(raised.value)
