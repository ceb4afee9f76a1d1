"""Run LiteRT in a child process: it crashes on some models and inputs.

`tflite_reader.read` checks the file's structure and import its operators. LiteRT checks the rest: versions of
operators, limits of its kernels, constants. The child reads a line of JSON {model: bytes, resolver: LiteRT's set of
kernels, inputs: [[tensor, type, shape], ...]} from stdin, then the model and the inputs.
"""

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from stages.ir.model_info import ModelInfo, OperatorInfo
from stages.ir.models.tflite_reader import read
from stages.ir.reference.interpreter import resolver
from stages.ir.reference.refusal import RunError, crash, first_crashing_operator, refusal
from stages.support.lazy import np

TIMEOUT = 120.0  # seconds; a MobileNet takes one


def check_loads(model: bytes, info: ModelInfo, name: str = "model") -> None:
    """Raise RunError, naming the operator, if LiteRT refuses the model or crashes on it.

    Takes half a second.
    """
    _ask(model, info, name, "load")


def tensor_shapes(model: bytes, name: str = "model") -> dict[int, tuple[int, ...]]:
    """Return the shapes of all tensors as LiteRT infers them, by number.

    For files that `tflite_reader.read` accepts. Tensors whose names are not UTF-8 are missing. Raises RunError if
    LiteRT refuses the file or crashes. Takes half a second.
    """
    shapes = json.loads(_ask(model, read(model, name), name, "shapes"))
    return {int(index): tuple(shape) for index, shape in shapes.items()}


def tensor_values(model: bytes, name: str = "model") -> dict[int, Any]:
    """Return the outputs of a file for inputs of zeros, by number.

    Raises RunError as `tensor_shapes`.
    """
    header, _, raw = _ask(model, read(model, name), name, "values").partition(b"\n")
    arrays, at = {}, 0
    for index, dtype, shape in json.loads(header):
        count = int(np.prod(shape))
        arrays[index] = np.frombuffer(raw, dtype, count, at).reshape(shape)
        at += count * np.dtype(dtype).itemsize
    return arrays


def crashing_operator(model: bytes, info: ModelInfo, inputs: Sequence[Any] | None = None) -> OperatorInfo | None:
    """Return the operator in which LiteRT crashes on `inputs`, None if it does not crash.

    inputs  one array for each of `info.inputs`; None: look for a crash while loading

    Takes half a second for each of log2(operators) tries.
    """
    fed = list(zip(info.inputs, inputs, strict=True)) if inputs is not None else []
    what = "load" if inputs is None else "run"
    return first_crashing_operator(model, info, lambda part: _run_child(part, info, what, fed).returncode < 0)


def _ask(model: bytes, info: ModelInfo, name: str, what: str) -> bytes:
    """Return the child's output for "load", "shapes" or "values". Raises RunError if it fails."""
    try:
        child = _run_child(model, info, what)
    except subprocess.TimeoutExpired:
        raise RunError(f"LiteRT did not finish loading {name} in {TIMEOUT:.0f} s") from None
    if child.returncode < 0:
        raise crash(info, name, -child.returncode, crashing_operator(model, info), "while it is loaded")
    if child.returncode:
        raise refusal(info, name, child.stderr.decode("utf-8", errors="replace").strip().rpartition("\n")[2])
    return child.stdout


def _run_child(
    model: bytes, info: ModelInfo, what: str, inputs: Sequence[tuple[int, Any]] = ()
) -> subprocess.CompletedProcess[bytes]:
    described = [[index, str(array.dtype), list(array.shape)] for index, array in inputs]
    about = {"model": len(model), "resolver": resolver(info.operators), "inputs": described}
    header = json.dumps(about).encode() + b"\n"
    fed = b"".join([header, model, *(array.tobytes() for _, array in inputs)])
    command = [sys.executable, str(Path(__file__).resolve()), what]
    return subprocess.run(command, input=fed, capture_output=True, timeout=TIMEOUT)


def _main() -> int:
    """The child process. Exit code 0 if LiteRT loads the model (and runs it for "run"), else 1.

    The last line on stderr is the reason. For "shapes" it prints the shape of each tensor by number; for "values"
    number, type and shape of each output, and on the next line their bytes.
    """
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    header = json.loads(sys.stdin.buffer.readline())
    model = sys.stdin.buffer.read(header["model"])
    try:
        kernels = OpResolverType[header["resolver"]]
        interpreter = Interpreter(model_content=model, experimental_op_resolver_type=kernels)
        interpreter.allocate_tensors()
        if sys.argv[1] == "shapes":
            print(
                json.dumps({detail["index"]: detail["shape"].tolist() for detail in interpreter.get_tensor_details()})
            )
        if sys.argv[1] == "values":
            for detail in interpreter.get_input_details():
                interpreter.set_tensor(detail["index"], np.zeros(detail["shape"], detail["dtype"]))
            interpreter.invoke()
            indices = [detail["index"] for detail in interpreter.get_output_details()]
            arrays = [np.asarray(interpreter.get_tensor(index)) for index in indices]
            described = [[index, str(a.dtype), list(a.shape)] for index, a in zip(indices, arrays, strict=True)]
            sys.stdout.buffer.write(b"".join([json.dumps(described).encode(), b"\n", *(a.tobytes() for a in arrays)]))
        if sys.argv[1] == "run":
            for index, dtype, shape in header["inputs"]:
                raw = sys.stdin.buffer.read(int(np.prod(shape)) * np.dtype(dtype).itemsize)
                interpreter.set_tensor(index, np.frombuffer(raw, dtype).reshape(shape))
            interpreter.invoke()
    except Exception as error:
        print(" ".join(str(error).split()), file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(_main())
