"""Loads a doubtful model in a process of its own, because LiteRT ends the process on some malformed files.

`tflite_reader.read` checks the file's structure; what is left are files whose structure is sound but whose values are
not (a stride of 0, a kernel larger than its tensor, ...). Some make LiteRT divide by zero or read outside a tensor.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stages.models.tflite_reader import ModelInfo

TIMEOUT = 120.0  # seconds; a MobileNet takes one


def check_model(model: bytes, name: str = "model") -> ModelInfo:
    """Checks that a file is sound and that LiteRT can load and run it (on zeros); returns what it holds.

    Raises StageError for a corrupt file, RunError when LiteRT refuses it or dies on it. Takes about half a second.
    """
    from stages.models.tflite_reader import read
    from stages.reference.interpreter import RunError

    info = read(model, name)
    try:
        child = subprocess.run(
            [sys.executable, str(Path(__file__).resolve())], input=model, capture_output=True, timeout=TIMEOUT
        )
    except subprocess.TimeoutExpired:
        raise RunError(f"LiteRT did not finish loading {name} in {TIMEOUT:.0f} s") from None
    if child.returncode < 0:
        raise RunError(
            f"{name} makes LiteRT crash (signal {-child.returncode}); the file is malformed",
            hint="Export it again, or check the options of its operators.",
        )
    if child.returncode:
        lines = child.stderr.decode("utf-8", errors="replace").strip().splitlines() or ["no message"]
        raise RunError(f"LiteRT cannot run {name}: {lines[-1]}")
    return info


def _main() -> int:
    """The child: model on stdin, exit code 0 if it allocates and runs, else 1 and the reason on stderr's last line."""
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    try:
        interpreter = Interpreter(
            model_content=sys.stdin.buffer.read(), experimental_op_resolver_type=OpResolverType.BUILTIN_REF
        )
        interpreter.allocate_tensors()
        interpreter.invoke()
    except Exception as error:
        print(" ".join(str(error).split()), file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(_main())
