"""Asks LiteRT in a process of its own, because it ends the process on some models and on some inputs.

`tflite_reader.read` checks the file's structure and the import its operators; what is left is what only LiteRT knows:
versions of operators, limits of its kernels, constants that they check. The child reads a line of JSON {model: bytes,
resolver: LiteRT's set of kernels, inputs: [[tensor, type, shape], ...]} from stdin, then the model and the inputs.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from stages.ir.models.tflite_reader import ModelInfo, OperatorInfo

TIMEOUT = 120.0  # seconds; a MobileNet takes one


def check_loads(model: bytes, info: ModelInfo, name: str = "model") -> None:
    """Raises RunError, naming the operator, when LiteRT refuses the model or ends with it. Takes half a second."""
    _ask(model, info, name, "load")


def tensor_shapes(model: bytes, name: str = "model") -> dict[int, tuple[int, ...]]:
    """The shapes of the tensors of a file that `tflite_reader.read` found sound, as LiteRT infers them.

    By number; LiteRT says nothing of a tensor whose name is not UTF-8. Raises RunError when LiteRT refuses the file or
    dies on it. Takes about half a second.
    """
    from stages.ir.models.tflite_reader import read

    found = json.loads(_ask(model, read(model, name), name, "shapes"))
    return {int(index): tuple(shape) for index, shape in found.items()}


def tensor_values(model: bytes, name: str = "model") -> dict[int, Any]:
    """The outputs of a file, by number, as arrays, when all of its inputs are zeros.

    Raises RunError as `tensor_shapes`.
    """
    import numpy as np

    from stages.ir.models.tflite_reader import read

    told, _, raw = _ask(model, read(model, name), name, "values").partition(b"\n")
    found, at = {}, 0
    for index, dtype, shape in json.loads(told):
        count = int(np.prod(shape))
        found[index] = np.frombuffer(raw, dtype, count, at).reshape(shape)
        at += count * np.dtype(dtype).itemsize
    return found


def operator_that_ends(model: bytes, info: ModelInfo, inputs: Sequence[Any] | None = None) -> OperatorInfo | None:
    """The operator in which LiteRT ends the process on `inputs`, one array for each of `info.inputs`.

    Without inputs: when it is loaded. None when LiteRT does not end. Takes half a second for each of some log2 tries.
    """
    from stages.ir.reference.refusal import deadly_operator

    given = list(zip(info.inputs, inputs, strict=True)) if inputs is not None else []
    what = "load" if inputs is None else "run"
    return deadly_operator(model, info, lambda part: _run_child(part, info, what, given).returncode < 0)


def _ask(model: bytes, info: ModelInfo, name: str, what: str) -> bytes:
    """What the child prints for "load", "shapes" or "values". RunError when it fails."""
    from stages.ir.reference.refusal import RunError, death, refusal

    try:
        child = _run_child(model, info, what)
    except subprocess.TimeoutExpired:
        raise RunError(f"LiteRT did not finish loading {name} in {TIMEOUT:.0f} s") from None
    if child.returncode < 0:
        raise death(info, name, -child.returncode, operator_that_ends(model, info), "while it is loaded")
    if child.returncode:
        raise refusal(info, name, child.stderr.decode("utf-8", errors="replace").strip().rpartition("\n")[2])
    return child.stdout


def _run_child(
    model: bytes, info: ModelInfo, what: str, inputs: Sequence[tuple[int, Any]] = ()
) -> subprocess.CompletedProcess[bytes]:
    from stages.ir.reference.interpreter import resolver

    described = [[index, str(array.dtype), list(array.shape)] for index, array in inputs]
    about = {"model": len(model), "resolver": resolver(info.operators), "inputs": described}
    header = json.dumps(about).encode() + b"\n"
    fed = b"".join([header, model, *(array.tobytes() for _, array in inputs)])
    command = [sys.executable, str(Path(__file__).resolve()), what]
    return subprocess.run(command, input=fed, capture_output=True, timeout=TIMEOUT)


def _main() -> int:
    """The child: exit code 0 if LiteRT loads (for "run": also runs) the model, else 1 and why on stderr's last line.

    Asked for "shapes" it prints the shape of each tensor, by its number; for "values" number, type and shape of each
    output, and on the next line their bytes.
    """
    import numpy as np
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    header = json.loads(sys.stdin.buffer.readline())
    model = sys.stdin.buffer.read(header["model"])
    try:
        kernels = OpResolverType[header["resolver"]]
        interpreter = Interpreter(model_content=model, experimental_op_resolver_type=kernels)
        interpreter.allocate_tensors()
        if sys.argv[1] == "shapes":
            print(json.dumps({one["index"]: one["shape"].tolist() for one in interpreter.get_tensor_details()}))
        if sys.argv[1] == "values":
            for one in interpreter.get_input_details():
                interpreter.set_tensor(one["index"], np.zeros(one["shape"], one["dtype"]))
            interpreter.invoke()
            indices = [one["index"] for one in interpreter.get_output_details()]
            made = [np.asarray(interpreter.get_tensor(index)) for index in indices]
            told = [[index, str(a.dtype), list(a.shape)] for index, a in zip(indices, made, strict=True)]
            sys.stdout.buffer.write(b"".join([json.dumps(told).encode(), b"\n", *(a.tobytes() for a in made)]))
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
