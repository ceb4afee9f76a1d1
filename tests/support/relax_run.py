"""Runs Relax modules on the machine that tests run on, through TVM's LLVM."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


def run_relax(module: Any, inputs: Sequence[Array]) -> list[Array]:
    """Outputs of `main`. The module is checked to be well formed first."""
    import tvm
    from tvm import relax

    relax.analysis.well_formed(module)
    machine = relax.VirtualMachine(tvm.compile(module, target="llvm"), tvm.cpu())
    made = machine["main"](*[tvm.runtime.tensor(array) for array in inputs])
    return [made.numpy()] if isinstance(made, tvm.runtime.Tensor) else [part.numpy() for part in made]


def weights(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> Array:
    """Random weights or data of a model of type `dtype`."""
    if dtype == "float32":
        return rng.standard_normal(shape).astype(np.float32)
    limits = np.iinfo(dtype)
    return rng.integers(limits.min + (dtype == "int8"), limits.max, shape, endpoint=True).astype(dtype)
