"""TFLite files with resource variables, as Keras has streaming networks converted."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import flatbuffers
import numpy as np
from ai_edge_litert import schema_py_generated as schema
from ai_edge_litert.interpreter import Interpreter, OpResolverType

from stages.ir.models.builder import ModelBuilder
from stages.ir.models.tflite_writer import Tensor

Quant = tuple[float, int]


def litert_outputs(data: bytes, inputs: Sequence[Sequence[np.ndarray]]) -> list[list[np.ndarray]]:
    """The outputs of a sequence from the first state on, by LiteRT on the file as it is."""
    interpreter = Interpreter(model_content=data, experimental_op_resolver_type=OpResolverType.BUILTIN_REF)
    interpreter.allocate_tensors()
    outputs = []
    for arrays in inputs:
        for detail, array in zip(interpreter.get_input_details(), arrays, strict=True):
            interpreter.set_tensor(detail["index"], array)
        interpreter.invoke()
        outputs.append([interpreter.get_tensor(detail["index"]) for detail in interpreter.get_output_details()])
    return outputs


class Streaming(ModelBuilder):
    """A model under construction: `variable` makes a resource with what it begins with, None for nothing."""

    def __init__(self) -> None:
        super().__init__()
        self._begins: dict[str, tuple[np.ndarray, Quant | None] | None] = {}
        self._steps: list[Callable[[], None]] = []

    def resource(self, name: str, begin: np.ndarray | None, quant: Quant | None = None) -> Tensor:
        """The handle of a variable."""
        self._begins[name] = None if begin is None else (begin, quant)
        handle = self.tensor(f"{name}/handle", (1,), "int32")
        self.operator("VAR_HANDLE", [], [handle], "VarHandleOptions", {"sharedName": name})
        return handle

    def read(self, handle: Tensor, shape: tuple[int, ...], dtype: str, quant: Quant | None = None) -> Tensor:
        made = self.tensor(handle.name.replace("handle", "read"), shape, dtype, *(quant or ()))
        self.operator("READ_VARIABLE", [handle], [made], "ReadVariableOptions")
        return made

    def assign(self, handle: Tensor, value: Tensor) -> None:
        self.operator("ASSIGN_VARIABLE", [handle, value], [], "AssignVariableOptions")

    def build(self) -> bytes:
        """With the graph that gives variables their first values, which CALL_ONCE runs, and handles as resources."""
        begins = {name: begin for name, begin in self._begins.items() if begin is not None}
        model = schema.ModelT.InitFromObj(schema.Model.GetRootAs(super().build(), 0))
        graph = model.subgraphs[0]
        for tensor in graph.tensors:
            if tensor.name.endswith(b"/handle"):
                tensor.type, tensor.shape = schema.TensorType.RESOURCE, np.zeros(0, np.int32)
        if begins:
            model.subgraphs.append(_beginning(model, begins))
            code = _code(model, schema.BuiltinOperator.CALL_ONCE)
            once = schema.OperatorT(opcodeIndex=code, inputs=np.zeros(0, np.int32), outputs=np.zeros(0, np.int32))
            once.builtinOptionsType = schema.BuiltinOptions.CallOnceOptions
            once.builtinOptions = schema.CallOnceOptionsT(initSubgraphIndex=1)
            graph.operators.insert(0, once)
        builder = flatbuffers.Builder(4096)
        builder.Finish(model.Pack(builder), file_identifier=b"TFL3")
        return bytes(builder.Output())


def _beginning(model: schema.ModelT, begins: Mapping[str, tuple[np.ndarray, Quant | None]]) -> schema.SubGraphT:
    handle, assign = (
        _code(model, code) for code in (schema.BuiltinOperator.VAR_HANDLE, schema.BuiltinOperator.ASSIGN_VARIABLE)
    )
    tensors, operators = [], []
    for number, (name, (values, quant)) in enumerate(begins.items()):
        model.buffers.append(schema.BufferT(data=np.frombuffer(values.tobytes(), np.uint8)))
        constant = schema.TensorT(name=name, shape=np.array(values.shape, np.int32), buffer=len(model.buffers) - 1)
        constant.type = getattr(schema.TensorType, str(values.dtype).upper())
        if quant is not None:
            scale, zero_point = np.array([quant[0]], np.float32), np.array([quant[1]], np.int64)
            constant.quantization = schema.QuantizationParametersT(scale=scale, zeroPoint=zero_point)
        resource = schema.TensorT(name=f"{name}/first", shape=np.zeros(0, np.int32), type=schema.TensorType.RESOURCE)
        tensors += [constant, resource]
        options = schema.VarHandleOptionsT(sharedName=name)
        made = schema.OperatorT(
            opcodeIndex=handle, inputs=np.zeros(0, np.int32), outputs=np.array([2 * number + 1], np.int32)
        )
        made.builtinOptionsType, made.builtinOptions = schema.BuiltinOptions.VarHandleOptions, options
        given = np.array([2 * number + 1, 2 * number], np.int32)
        operators += [made, schema.OperatorT(opcodeIndex=assign, inputs=given, outputs=np.zeros(0, np.int32))]
    nothing = np.zeros(0, np.int32)
    return schema.SubGraphT(name="begin", tensors=tensors, operators=operators, inputs=nothing, outputs=nothing)


def _code(model: schema.ModelT, code: int) -> int:
    """The number of an operator code, which the model gets unless it has it."""
    for number, known in enumerate(model.operatorCodes):
        if known.builtinCode == code:
            return number
    model.operatorCodes.append(schema.OperatorCodeT(builtinCode=code, deprecatedBuiltinCode=min(code, 127), version=1))
    return len(model.operatorCodes) - 1


def frames(dtype: str) -> bytes:
    """A network that remembers the last four frames, and a sum of its results; what it begins with is not zero."""
    rng, b = np.random.default_rng(2), Streaming()
    quant, sums = ((0.05, -3), (0.1, 4)) if dtype == "int8" else (None, None)
    integers = quant is not None
    x = b.input("x", (1, 1, 6), dtype, *(quant or ()))
    begin = np.full((1, 4, 6), -3, np.int8) if integers else rng.normal(0, 1, (1, 4, 6)).astype(np.float32)
    kept = b.resource("frames", begin, quant)
    together = b.concatenation([b.read(kept, (1, 4, 6), dtype, quant), x], 1, name="all")
    b.assign(kept, b.strided_slice(together, (0, 1, 0), (1, 5, 6), name="new"))
    weights = rng.integers(-127, 128, (3, 30))
    given = weights.astype(np.int8) if integers else (weights / 100).astype(np.float32)
    y = b.fully_connected(b.reshape(together, (1, 30)), given, weight_scale=0.01 if integers else None, out=sums)
    count = b.resource("count", np.array([0, 20, 40], dtype), sums)
    total = b.add(b.reshape(y, (3,), name="flat"), b.read(count, (3,), dtype, sums), out=sums, name="sum")
    b.assign(count, total)
    b.output(total, y)
    return b.build()


@dataclass(frozen=True)
class Windows:
    """A random streaming network: the form of its windows, of which each is one of the choices below.

    rows     rows of a window: `before` from the state, then or first `new`
    dropped  oldest rows that the state drops per run, at most `new`
    """

    dtype: str
    batch: int
    axis: int
    before: int
    new: int
    dropped: int
    side: str
    whole: bool
    begin: str
    readers: frozenset[str]

    @classmethod
    def drawn(cls, seed: int) -> Self:
        rng = np.random.default_rng(seed)
        new, before = int(rng.integers(1, 4)), int(rng.integers(1, 8))
        whole = bool(rng.integers(2))
        return cls(
            dtype=("int8", "float32", "int16")[seed % 3],
            batch=(1, 1, 2)[rng.integers(3)],
            axis=(1, 1, 2)[rng.integers(3)],
            before=before,
            new=new,
            dropped=new if whole else int(rng.integers(1, new + 1)),
            side=("behind", "first", "both")[rng.integers(3)],
            whole=whole,
            begin=("zero point", "constant", "random")[rng.integers(3)],
            readers=frozenset(
                name for name in ("old", "twice", "later", "window", "part", "delayed") if rng.integers(4) == 0
            ),
        )

    @property
    def stays_in_place(self) -> bool:
        """Whether no reader needs rows of the state that move away, or that lie apart, and rows move at all."""
        old = self.readers & {"old", "delayed"}
        ahead = {"behind": 0, "first": self.new, "both": 1}[self.side]
        moves = ahead != (0 if self.side == "first" else self.dropped)
        return moves and (not old or (not self.whole and self.batch == self.axis == 1))

    def build(self) -> bytes:
        rng, b = np.random.default_rng(self.before), Streaming()
        quant = None if self.dtype == "float32" else (0.05, 0 if self.dtype == "int16" else -3)

        def shape(rows: int) -> tuple[int, ...]:
            return (self.batch, rows, 16) if self.axis == 1 else (self.batch, 16, rows)

        def cut(x: Tensor, first: int, rows: int, name: str) -> Tensor:
            begin, end = [0, 0, 0], list(x.shape)
            begin[self.axis], end[self.axis] = first, first + rows
            return b.strided_slice(x, begin, end, name=name)

        x = b.input("x", shape(self.new), self.dtype, *(quant or (None,)))
        outputs = []
        for number in range(2):  # the second window has rows that a layer computes
            new = b.add(x, x, out=quant, name="doubled") if number else x
            total = self.before + self.new
            rows = total if self.whole else self.before
            begin = np.full(shape(rows), quant[1] if quant else 0, self.dtype)
            if self.begin == "constant":
                begin += np.array(5, self.dtype)
            elif self.begin == "random":
                begin = rng.integers(-100, 100, shape(rows)).astype(self.dtype)
            handle = b.resource(f"state{number}", begin, quant)
            kept = b.read(handle, shape(rows), self.dtype, quant)
            news = {"behind": ([], [new]), "first": ([new], [])}.get(self.side)
            if news is None:
                news = ([new], []) if self.new == 1 else ([cut(new, 0, 1, "a")], [cut(new, 1, self.new - 1, "b")])
            ahead = sum(part.shape[self.axis] for part in news[0])
            drop = 0 if self.side == "first" else self.dropped  # a window with new rows first drops its last rows
            part = cut(kept, drop, self.before, "kept") if self.whole else kept
            window = b.concatenation([*news[0], part, *news[1]], self.axis, name=f"window{number}")
            value = window if self.whole else cut(window, drop, self.before, "next")
            delayed = b.add(kept, kept, out=quant, name="delayed") if "delayed" in self.readers else None
            b.assign(handle, value)
            outputs.append(b.add(window, window, out=quant, name="sum"))
            if delayed is not None:
                outputs.append(delayed)
            if "old" in self.readers:
                outputs.append(b.add(kept, kept, out=quant, name="old"))
            if "twice" in self.readers:
                again = b.concatenation([window, window], self.axis, name="twice")
                outputs.append(b.add(again, again, out=quant, name="sums"))
            if "later" in self.readers:
                after = b.read(handle, shape(rows), self.dtype, quant)
                outputs.append(b.add(after, after, out=quant, name="after"))
            if "part" in self.readers:
                outputs.append(cut(window, ahead, self.before, "part"))
            if "window" in self.readers and number:
                outputs.append(window)
        b.output(*outputs)
        return b.build()
