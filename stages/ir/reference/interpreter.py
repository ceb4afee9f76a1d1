"""A thin, strict wrapper of LiteRT's interpreter with its reference kernels."""

from collections.abc import Mapping, Sequence
from importlib.metadata import version

import numpy as np

from stages.ir.arrays import Array
from stages.ir.model_info import ModelInfo, OperatorInfo, TensorInfo
from stages.ir.models.tflite_reader import read
from stages.ir.operators.table import OPERATORS
from stages.ir.reference.refusal import RunError, refusal


def litert(kernels: str = "BUILTIN_REF") -> str:
    """Return the reference's name with the installed version: `LiteRT 2.3.0 BUILTIN_REF`."""
    return f"LiteRT {version('ai-edge-litert')} {kernels}"


def is_optimized(operator: OperatorInfo) -> bool:
    """Whether LiteRT has only an optimized kernel for the operator, no reference kernel."""
    return operator.op in OPERATORS and OPERATORS[operator.op].litert.optimized


def resolver(operators: Sequence[OperatorInfo]) -> str:
    """Return LiteRT's set of kernels for these operators.

    The reference kernels, or the optimized ones if an operator has no reference kernel.
    """
    return "BUILTIN_WITHOUT_DEFAULT_DELEGATES" if any(map(is_optimized, operators)) else "BUILTIN_REF"


class Reference:
    """One model, loaded once and run many times.

    info     the file's tensors and operators (`stages.ir.model_info.ModelInfo`)
    inputs   tensors that the caller passes, in the graph's order, without constants among the file's inputs
    outputs  tensors that `run` returns, in the graph's order

    With preserve_all (the default) every intermediate tensor keeps its value for `tensor`. Without it, memory is reused
    and only inputs, outputs and constants can be read.
    """

    def __init__(self, model: bytes, *, name: str = "model", preserve_all: bool = True) -> None:
        """Load `model`. Raises StageError if it is corrupt, RunError if LiteRT lacks a kernel."""
        self.info: ModelInfo = read(model, name)
        self.name = name
        from ai_edge_litert.interpreter import Interpreter, OpResolverType

        try:
            self._interpreter = Interpreter(
                model_content=model,
                experimental_op_resolver_type=OpResolverType[resolver(self.info.operators)],
                experimental_preserve_all_tensors=preserve_all,
            )
            self._interpreter.allocate_tensors()
        except (RuntimeError, ValueError) as error:
            raise refusal(self.info, name, str(error)) from None
        self._preserve_all = preserve_all
        self.inputs: tuple[TensorInfo, ...] = tuple(self.info.tensors[index] for index in self.info.inputs)
        self.outputs: tuple[TensorInfo, ...] = tuple(self.info.tensors[index] for index in self.info.outputs)

    @property
    def described(self) -> str:
        """The reference's name in reports."""
        return litert("BUILTIN_REF" if resolver(self.info.operators) == "BUILTIN_REF" else "BUILTIN")

    def run(self, inputs: Sequence[Array] | Mapping[str, Array]) -> list[Array]:
        """Run once and return copies of the outputs.

        inputs  one array per entry of `self.inputs`, or a mapping from tensor name

        Arrays have the tensor's dtype and shape; axes of size 1 may be missing or added. Raises RunError otherwise.
        """
        for tensor, array in zip(self.inputs, self._ordered(inputs), strict=True):
            expected = self._interpreter.get_tensor(tensor.index).shape if tensor.dynamic else tensor.shape
            if str(array.dtype) != tensor.dtype or _squeezed(array.shape) != _squeezed(expected):
                raise RunError(
                    f"input {tensor.name} of {self.name} is {tensor.dtype}{list(expected)}, "
                    f"got {array.dtype}{list(array.shape)}"
                )
            self._interpreter.set_tensor(tensor.index, np.ascontiguousarray(array).reshape(expected))
        try:
            self._interpreter.invoke()
        except (RuntimeError, ValueError) as error:
            raise refusal(self.info, self.name, str(error)) from None
        return [self._interpreter.get_tensor(index) for index in self.info.outputs]

    def reset(self) -> None:
        """Reset the variable tensors; `run` keeps them between runs."""
        self._interpreter.reset_all_variables()

    def has(self, index: int) -> bool:
        """Whether the reference knows the tensor: always true here."""
        return True

    def tensor(self, index: int) -> Array:
        """Return a copy of a tensor after the last run; of constants at any time."""
        is_preserved = self._preserve_all or self.info.tensors[index].data is not None
        if not is_preserved and index not in (*self.info.inputs, *self.info.outputs):
            raise RunError(f"tensor {index} of {self.name} was not preserved (preserve_all=False)")
        try:
            return np.asarray(self._interpreter.get_tensor(index))
        except ValueError as error:
            raise RunError(f"tensor {index} of {self.name} has no value: {_one_line(error)}") from None

    def computed(self) -> dict[int, Array]:
        """Return every tensor that an operator wrote in the last run, by number.

        In the order of the operators.
        """
        return {index: self.tensor(index) for op in self.info.operators for index in op.outputs}

    def _ordered(self, inputs: Sequence[Array] | Mapping[str, Array]) -> list[Array]:
        names = [tensor.name for tensor in self.inputs]
        if isinstance(inputs, Mapping):
            if set(inputs) != set(names):
                raise RunError(f"inputs of {self.name} are {', '.join(names)}; got {', '.join(inputs) or 'none'}")
            return [np.asarray(inputs[name]) for name in names]
        if len(inputs) != len(names):
            raise RunError(f"{self.name} has {len(names)} inputs ({', '.join(names)}); got {len(inputs)}")
        return [np.asarray(array) for array in inputs]


def run(model: bytes, inputs: Sequence[Array] | Mapping[str, Array]) -> list[Array]:
    """Return the outputs of one run; for tests."""
    return Reference(model, preserve_all=False).run(inputs)


def random_inputs(info: ModelInfo, seed: int = 0) -> list[Array]:
    """Return one random array per input.

    Integers are uniform over their range, float32 is uniform in [-1, 1). The stream is PCG64's raw output, which NumPy
    promises to keep: the same seed gives the same bytes everywhere.
    """
    stream = np.random.PCG64(seed)
    arrays: list[Array] = []
    for index in info.inputs:
        tensor = info.tensors[index]
        count = int(np.prod(tensor.shape))
        raw = np.asarray(stream.random_raw(count), dtype=np.uint64) >> np.uint64(32)
        if tensor.dtype == "float32":
            # 24 bits: each value is exact in float32.
            values = (raw >> np.uint64(8)).astype(np.float32) / np.float32(2**23) - np.float32(1)
        else:
            values = raw.astype(np.uint32).astype(np.dtype(tensor.dtype))
        arrays.append(values.reshape(tensor.shape))
    return arrays


def _squeezed(shape: Sequence[int]) -> tuple[int, ...]:
    return tuple(int(size) for size in shape if size != 1)


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())
