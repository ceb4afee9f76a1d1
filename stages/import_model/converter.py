"""TVM's TFLite operator converter, bent to one function per operator and to what LiteRT really computes.

TVM's `OperatorConverter` turns one operator after the other into Relax expressions. Here each operator gets its own
block builder, its data tensors become parameters and its constants stay inside. Conversions that TVM 0.27 lacks or
that differ from LiteRT's reference kernels are overridden; each says why.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from tvm import relax
from tvm.relax.frontend.tflite.tflite_frontend import ExprTable, TensorWrapper

from stages.import_model.file_tables import Widened, options_of
from stages.import_model.hybrid import convert_hybrid, is_hybrid
from stages.import_model.moving import MovingConverter
from stages.import_model.transposed import transposed_convolution
from stages.ir.arithmetic.activation_bounds import BOUNDS
from stages.ir.arithmetic.fixed_point import quantized_bound
from stages.ir.arithmetic.transposed import PhaseAxis
from stages.ir.models.tflite_reader import WIDENED, ModelInfo, OperatorInfo
from stages.ir.operators.operation import Operation
from stages.ir.operators.table import OPERATORS
from stages.ir.relax_module import build_function

# What reductions are of booleans, whose sums and products are booleans too.
_OF_BOOLS = {"REDUCE_MAX": "REDUCE_ANY", "SUM": "REDUCE_ANY", "REDUCE_MIN": "REDUCE_ALL", "REDUCE_PROD": "REDUCE_ALL"}


class Unsupported(Exception):
    """The operator, as the file uses it, cannot be converted; the message completes "operator 3 (ADD, 'sum') ..."."""


class Converter(MovingConverter):
    """Converts single operators of `model` (the flatbuffer) whose contents `info` passed stages.import_model.checks.

    Tensors are known by their index, not by their name as in TVM: names may be empty or occur twice.
    """

    def __init__(self, model: Any, info: ModelInfo) -> None:
        super().__init__(model, model.Subgraphs(0), ExprTable(), None)
        self.info = info
        self.folded: dict[int, npt.NDArray[Any]] = {}
        self._data: dict[int, relax.Expr] = {}

    def constant(self, index: int) -> npt.NDArray[Any] | None:
        """The value of a tensor that is known now, None for one computed at run time."""
        if index in self.folded:
            return self.folded[index]
        tensor = self.info.tensors[index]
        return tensor.values() if tensor.data is not None else None

    def convert(self, operator: OperatorInfo, name: str) -> tuple[relax.Function, tuple[int, ...]]:
        """The operator as a private function, and the indices of the tensors that are its parameters.

        A tensor that is read twice is one parameter. Several outputs make a tuple. Raises Unsupported, or whatever TVM
        raises.
        """
        data = tuple(dict.fromkeys(i for i in operator.inputs if i >= 0 and self.constant(i) is None))
        self._data = {index: relax.Var(f"t{index}", self.type(index)) for index in data}
        self.exp_tab = ExprTable()

        def body(builder: relax.BlockBuilder) -> relax.Expr:
            self.bb = builder
            return self._declared(builder.normalize(self._made(operator)), operator)

        return build_function(name, list(self._data.values()), body), data

    def _made(self, operator: OperatorInfo) -> relax.Expr:
        flat = self.subgraph.Operators(operator.index)
        declared = OPERATORS[operator.op]
        types = {self.info.tensors[index].dtype for index in (*operator.inputs[:1], *operator.outputs)}
        if operator.op == "QUANTIZE" and "int32" in types:  # Relax quantizes to 8 and 16 bits
            return self._opaque(operator)
        if declared.opaque or declared.state or (operator.op not in self.convert_map and declared.body is None):
            return self._opaque(operator)
        if declared.body is not None and self.info.tensors[operator.inputs[0]].dtype != "float32":
            return self._quantized_body(operator, declared.body)
        if operator.op in _OF_BOOLS and self.info.tensors[operator.inputs[0]].dtype == "bool":
            return self.convert_map[_OF_BOOLS[operator.op]](op=flat)
        if declared.table is None or not is_hybrid(operator, self.info):
            return self.convert_map[operator.op](op=flat)
        options = options_of(flat, declared.table.name)
        bias = self.constant(operator.inputs[2]) if operator.inputs[2:] and operator.inputs[2] >= 0 else None
        data, activation = self.get_expr(operator.inputs[0]), self.convert_fused_activation_function
        return convert_hybrid(operator, self.info, data, bias, options, activation)

    def _opaque(self, operator: OperatorInfo) -> relax.Expr:
        """A call of a function that nobody has: what the operator computes is known to its own layer alone.

        So it is with plug-ins', with those declared so, and with all that keep state, which Relax does not know.
        """
        types = [self.type(index) for index in operator.outputs]
        made = types[0] if len(types) == 1 else relax.TupleType(types)
        declared = OPERATORS[operator.op]
        free = () if declared.state else (*declared.indices, *declared.apart)  # what may have fewer bits
        operands = [
            self.get_expr(index) if position in free else self.typed(index)
            for position, index in enumerate(operator.inputs)
            if index >= 0
        ]
        return relax.op.call_pure_packed(f"firmline.{declared.kind}", *operands, ty_args=made)

    def typed(self, index: int) -> relax.Expr:
        """As get_expr, where constants of 64 bits stay so: Relax makes indices of them."""
        value = self.constant(index)
        return self.get_expr(index) if value is None else relax.const(value, str(value.dtype))

    def _quantized_body(self, operator: OperatorInfo, body: Callable[..., relax.Expr]) -> relax.Expr:
        """quantize(body(dequantize(x), ...)) of what is declared to be computed with real numbers; body(x) of int32."""
        inputs, (result,) = self.get_tensors(operator.inputs), self.get_tensors(operator.outputs)
        table = OPERATORS[operator.op].table
        activation = Operation.of(operator, self.info).options(table).get("activation", 0)
        if not result.qnn_params:
            made = body(*(self.get_expr(tensor.tensor_idx) for tensor in inputs))
            return self.convert_fused_activation_function(made, activation)
        real = (self.dequantize(self.get_expr(tensor.tensor_idx), tensor) for tensor in inputs)
        made = self.quantize(body(*real), result)
        info = self.info.tensors[operator.outputs[0]]
        quantization = float(info.scale[0]), int(info.zero_point[0])
        return self.convert_qnn_fused_activation_function(made, activation, *quantization, info.dtype)

    def fold(self, operator: OperatorInfo) -> bool:
        """Computes a DEQUANTIZE of a constant (float16 weights, mostly) now. False if the operator is another one."""
        if operator.op != "DEQUANTIZE":
            return False
        source = self.info.tensors[operator.inputs[0]]
        value = self.constant(source.index)
        if value is None:
            return False
        if source.scale.size:
            shape = [-1 if axis == source.axis else 1 for axis in range(value.ndim)] if source.scale.size > 1 else []
            value = (value.astype(np.int64) - source.zero_point.reshape(shape)) * source.scale.reshape(shape)
        self.folded[operator.outputs[0]] = np.asarray(value, dtype=np.float32)
        return True

    def type(self, index: int) -> relax.TensorType:
        tensor = self.info.tensors[index]
        return relax.TensorType(tensor.shape, tensor.dtype)

    def _declared(self, made: relax.Expr, operator: OperatorInfo) -> relax.Expr:
        """`made`, when its types are those the file declares for the outputs."""
        # SPLIT into one part is a tuple of one in Relax, and one tensor in the file.
        if isinstance(made.ty, relax.TupleType) and len(operator.outputs) == 1:
            made = self.bb.normalize(relax.TupleGetItem(made, 0))
        types = list(made.ty.fields) if isinstance(made.ty, relax.TupleType) else [made.ty]
        for index, found in zip(operator.outputs, types, strict=True):
            tensor, shape = self.info.tensors[index], tuple(int(size) for size in found.shape)
            if shape != tensor.shape or str(found.dtype.dtype) != tensor.dtype:
                raise Unsupported(
                    f"gives {found.dtype.dtype}{list(shape)}, but the file declares {tensor.dtype}{list(tensor.shape)}"
                )
        return made

    # ---- what TVM's converter asks for -------------------------------------------------------------------------

    def get_expr(self, input_tensor_idx: int) -> relax.Expr:
        index = int(input_tensor_idx)
        if index not in self._data:
            # Some of TVM's conversions take for granted that their data is no constant.
            self._data[index] = relax.const(self.constant(index))
        return self._data[index]

    def has_expr(self, input_tensor_idx: int) -> bool:
        return int(input_tensor_idx) in self._data

    def is_prefetched(self, input_tensor_idx: int) -> bool:
        """Never: TVM computes sparse tensors ahead, and looks for them by name, which need not be UTF-8."""
        return False

    def get_tensor_value(self, tensor_wrapper: TensorWrapper, is_sparse: bool = False) -> npt.NDArray[Any]:
        index = int(tensor_wrapper.tensor_idx)
        value = self.constant(index)
        if value is None:
            name = self.info.tensors[index].name
            raise Unsupported(f"takes {name!r} from a computed tensor; it must be a constant")
        return value

    def get_tensor_shape(self, tensor_wrapper: TensorWrapper) -> npt.NDArray[Any]:
        return np.array(self.info.tensors[int(tensor_wrapper.tensor_idx)].shape, dtype=np.int32)

    def get_input_tensors(self, op: Any) -> list[TensorWrapper]:
        """As TVM's, without absent tensors at the end: TVM's convolution looks into a bias of -1."""
        found = self.get_tensors(op.InputsAsNumpy())
        while found and found[-1].tensor_idx < 0:
            found.pop()
        return found

    def get_tensors(self, tensors_idx_list: Any) -> list[TensorWrapper]:
        """As TVM's, with the scales just as they are in the file.

        Unlike TVM's it takes one zero point for many scales, no quantization for float tensors and for scale 0, and an
        axis only where there are several scales (exporters leave any number in it).
        """
        found = []
        for index in (int(i) for i in tensors_idx_list):
            if index < 0:
                found.append(TensorWrapper(index, 0, 0))
                continue
            tensor, info, parameters = self.subgraph.Tensors(index), self.info.tensors[index], None
            if WIDENED.get(info.dtype) == "int8":
                tensor = Widened.of(tensor)
            if info.scale.size and info.scale.all() and not info.dtype.startswith("float"):
                many = info.scale.size > 1
                parameters = {
                    "scale": relax.const(info.scale if many else info.scale[0], "float32"),
                    "zero_point": relax.const(int(info.zero_point[0]), "int32"),
                    "axis": info.axis if many else 0,
                }
            found.append(TensorWrapper(index, tensor, self.model.Buffers(tensor.Buffer()), parameters))
        return found

    def has_same_qnn_params(self, lhs_tensor: TensorWrapper, rhs_tensor: TensorWrapper) -> bool:
        """Whether scale and zero point are equal; TVM's tolerance of 1e-5 is more than many a scale."""
        a, b = (self.info.tensors[int(t.tensor_idx)] for t in (lhs_tensor, rhs_tensor))
        return np.array_equal(a.scale, b.scale) and np.array_equal(a.zero_point, b.zero_point)

    # ---- conversions of our own --------------------------------------------------------------------------------

    def dequantize(self, expr: relax.Expr, tensor: TensorWrapper) -> relax.Expr:
        """As TVM's; Relax dequantizes no int64, the bias of 16-bit activations: its numbers stay as they are."""
        if self.info.tensors[int(tensor.tensor_idx)].dtype == "int64":
            return relax.op.astype(expr, "float32")
        return super().dequantize(expr, tensor)

    def convert_qnn_fused_activation_function(
        self, expr: relax.Expr, fused_activation_fn: int, scale: float, zero_point: int, dtype: str
    ) -> relax.Expr:
        """The clamp in integers as CalculateActivationRangeQuantized has it: in float32, halves away from zero.

        TVM divides in double and rounds halves to even.
        """
        if fused_activation_fn == 0:
            return expr
        limits = np.iinfo(dtype)
        low, high = list(BOUNDS.values())[fused_activation_fn]

        def quantized(value: float | None, otherwise: int) -> float:
            if value is None:
                return float(otherwise)
            return float(min(max(quantized_bound(value, scale, int(zero_point)), limits.min), limits.max))

        return relax.op.clip(expr, min=quantized(low, limits.min), max=quantized(high, limits.max))

    def convert_fully_connected(self, op: Any) -> relax.Expr:
        """Rows of `depth` elements, whatever the input's shape; TVM's matmul takes the input's axes as they are."""
        tensors, result = self.get_input_tensors(op), self.get_output_tensors(op)[0]
        index = int(tensors[0].tensor_idx)
        data, shape = self.get_expr(index), self.info.tensors[index].shape
        depth = self.info.tensors[int(tensors[1].tensor_idx)].shape[-1]
        rows = int(np.prod(shape)) // depth
        if shape != (rows, depth):
            self._data[index] = relax.op.reshape(data, (rows, depth))
        made = self.bb.normalize(super().convert_fully_connected(op))
        self._data[index] = data
        wanted = self.info.tensors[int(result.tensor_idx)].shape
        return made if wanted == (rows, int(made.ty.shape[-1])) else relax.op.reshape(made, wanted)

    def convert_transpose_conv(self, op: Any) -> relax.Expr:
        """With the reference's padding, and an activation, which TVM leaves out; of floats as convolutions.

        Quantized, a conv2d_transpose that only says what is meant: stages.quantize makes convolutions of it.
        """
        _, kernel, source, *bias = self.get_input_tensors(op)
        result, options = self.get_output_tensors(op)[0], options_of(op, "TransposeConvOptions")
        image, out = (self.info.tensors[int(tensor.tensor_idx)].shape for tensor in (source, result))
        weights, strides = self.get_tensor_value(kernel), (options.StrideH(), options.StrideW())
        axes = [PhaseAxis.of(image[n], out[n], weights.shape[n], strides[n - 1]) for n in (1, 2)]
        data, activation = self.get_expr(source.tensor_idx), options.FusedActivationFunction()
        if not source.qnn_params:
            made = transposed_convolution(data, weights, axes, out)
            made = relax.op.add(made, self.get_expr(bias[0].tensor_idx)) if bias else made
            return self.convert_fused_activation_function(made, activation)
        planes = relax.const(np.ascontiguousarray(weights.transpose(3, 0, 1, 2)))
        parameters = kernel.qnn_params
        real = relax.op.dequantize(planes, parameters["scale"], parameters["zero_point"], axis=1)
        (top, bottom), (left, right) = (axis.trimmed for axis in axes)
        made = relax.op.nn.conv2d_transpose(
            self.dequantize(data, source),
            real,
            strides=strides,
            padding=(top, left, max(0, bottom), max(0, right)),
            output_padding=(max(0, -bottom), max(0, -right)),
            data_layout="NHWC",
            kernel_layout="IOHW",
        )
        made = relax.op.add(made, self.dequantize(self.get_expr(bias[0].tensor_idx), bias[0])) if bias else made
        info = self.info.tensors[int(result.tensor_idx)]
        quantization = float(info.scale[0]), int(info.zero_point[0])
        made = self.quantize(made, result)
        return self.convert_qnn_fused_activation_function(made, activation, *quantization, info.dtype)

    def convert_batch_matmul(self, op: Any) -> relax.Expr:
        """Also quantized, and with batches that broadcast either way, which TVM leaves out."""
        tensors, result = self.get_input_tensors(op), self.get_output_tensors(op)[0]
        options = options_of(op, "BatchMatMulOptions") if op.BuiltinOptions() is not None else None
        adjoint = (options.AdjX(), options.AdjY()) if options is not None else (False, False)
        sides = []
        for tensor, exchanged in zip(tensors, adjoint, strict=True):
            side = self.get_expr(tensor.tensor_idx)
            side = self.dequantize(side, tensor) if tensor.qnn_params else side
            axes = [*range(self._rank(tensor) - 2), self._rank(tensor) - 1, self._rank(tensor) - 2]
            sides.append(relax.op.permute_dims(side, axes) if exchanged else side)
        made = relax.op.matmul(*sides)
        return self.quantize(made, result) if result.qnn_params else made

    def convert_softmax(self, op: Any) -> relax.Expr:
        """With beta, which TVM leaves out. Of floats it multiplies what LiteRT multiplies: differences of at most 0."""
        beta = options_of(op, "SoftmaxOptions").Beta()
        if beta == 1.0:
            return super().convert_softmax(op)
        source, result = self.get_input_tensors(op)[0], self.get_output_tensors(op)[0]
        data = self.get_expr(source.tensor_idx)
        real = self.dequantize(data, source) if source.qnn_params else data
        if not source.qnn_params:
            real = relax.op.subtract(real, relax.op.max(real, axis=-1, keepdims=True))
        made = relax.op.nn.softmax(relax.op.multiply(real, relax.const(beta, "float32")), axis=-1)
        return self.quantize(made, result) if result.qnn_params else made

    def convert_gelu(self, op: Any) -> relax.Expr:
        """Also by tanh, which TVM takes for the other."""
        if options_of(op, "GeluOptions").Approximate():
            return relax.op.nn.gelu_tanh(self.get_expr(self.get_input_tensors(op)[0].tensor_idx))
        return super().convert_gelu(op)

    def convert_l2_normalization(self, op: Any) -> relax.Expr:
        """Also for quantized tensors, which TVM refuses."""
        source, result = self.get_input_tensors(op)[0], self.get_output_tensors(op)[0]
        if not source.qnn_params:
            return super().convert_l2_normalization(op)
        real = self.dequantize(self.get_expr(source.tensor_idx), source)
        squares = relax.op.sum(relax.op.square(real), axis=-1, keepdims=True)
        norm = relax.op.maximum(relax.op.sqrt(squares), relax.const(1e-6, "float32"))
        return self.quantize(relax.op.divide(real, norm), result)
