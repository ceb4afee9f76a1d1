"""TVM's TFLite converter, adapted: one function per operator, and LiteRT's arithmetic.

TVM's `OperatorConverter` appends operators to one Relax expression. Here each operator gets its own block builder: its
data tensors become parameters, its constants stay inside. Conversions that TVM 0.27 lacks, or that differ from LiteRT's
reference kernels, are overridden; each override says why.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from tvm import relax
from tvm.relax.frontend.tflite.tflite_frontend import ExprTable, TensorWrapper

from stages.import_model.data_movement import MovingConverter
from stages.import_model.file_tables import Widened, options_of
from stages.import_model.hybrid import convert_hybrid, is_hybrid
from stages.import_model.transposed import transposed_convolution
from stages.ir.arithmetic.activation_bounds import BOUNDS
from stages.ir.arithmetic.fixed_point import quantized_bound
from stages.ir.arithmetic.transposed import PhaseAxis
from stages.ir.model_info import WIDENED, ModelInfo, OperatorInfo
from stages.ir.operators.operation import Operation
from stages.ir.operators.table import OPERATORS
from stages.ir.relax_module import build_function

# Reductions of booleans: sums and products are booleans too.
_BOOL_REDUCTIONS = {
    "REDUCE_MAX": "REDUCE_ANY",
    "SUM": "REDUCE_ANY",
    "REDUCE_MIN": "REDUCE_ALL",
    "REDUCE_PROD": "REDUCE_ALL",
}


class Unsupported(Exception):
    """The operator cannot be converted. The message completes "operator 3 (ADD, 'sum') ..."."""


class Converter(MovingConverter):
    """Convert single operators of `model` (a flatbuffer) with the checked contents `info`.

    Tensors are identified by index. TVM uses names, which may be empty or occur twice.
    """

    def __init__(self, model: Any, info: ModelInfo) -> None:
        super().__init__(model, model.Subgraphs(0), ExprTable(), None)
        self.info = info
        self.folded: dict[int, npt.NDArray[Any]] = {}
        self._data: dict[int, relax.Expr] = {}

    def constant(self, index: int) -> npt.NDArray[Any] | None:
        """Return the value of a tensor that is known at import, None for a computed tensor."""
        if index in self.folded:
            return self.folded[index]
        tensor = self.info.tensors[index]
        return tensor.values() if tensor.data is not None else None

    def convert(self, operator: OperatorInfo, name: str) -> tuple[relax.Function, tuple[int, ...]]:
        """Return the operator as a private function, and the tensor indices of its parameters.

        A tensor that is read twice is one parameter. Several outputs are a tuple. Raises Unsupported, and all errors of
        TVM.
        """
        data = tuple(dict.fromkeys(i for i in operator.inputs if i >= 0 and self.constant(i) is None))
        self._data = {index: relax.Var(f"t{index}", self.type(index)) for index in data}
        self.exp_tab = ExprTable()

        def body(builder: relax.BlockBuilder) -> relax.Expr:
            self.bb = builder
            return self._declared(builder.normalize(self._expression(operator)), operator)

        return build_function(name, list(self._data.values()), body), data

    def _expression(self, operator: OperatorInfo) -> relax.Expr:
        flat = self.subgraph.Operators(operator.index)
        declared = OPERATORS[operator.op]
        types = {self.info.tensors[index].dtype for index in (*operator.inputs[:1], *operator.outputs)}
        if operator.op == "QUANTIZE" and "int32" in types:  # Relax quantizes to 8 and 16 bits
            return self._opaque(operator)
        if (
            declared.legalization.opaque
            or declared.tensors.state
            or (operator.op not in self.convert_map and declared.legalization.body is None)
        ):
            return self._opaque(operator)
        if declared.legalization.body is not None and self.info.tensors[operator.inputs[0]].dtype != "float32":
            return self._quantized_body(operator, declared.legalization.body)
        if operator.op in _BOOL_REDUCTIONS and self.info.tensors[operator.inputs[0]].dtype == "bool":
            return self.convert_map[_BOOL_REDUCTIONS[operator.op]](op=flat)
        if declared.table is None or not is_hybrid(operator, self.info):
            return self.convert_map[operator.op](op=flat)
        options = options_of(flat, declared.table.name)
        bias = self.constant(operator.inputs[2]) if operator.inputs[2:] and operator.inputs[2] >= 0 else None
        data, activation = self.get_expr(operator.inputs[0]), self.convert_fused_activation_function
        return convert_hybrid(operator, self.info, data, bias, options, activation)

    def _opaque(self, operator: OperatorInfo) -> relax.Expr:
        """Return a call of an external function `firmline.KIND`.

        Used for plug-ins' operators, operators declared opaque, and operators with state, which Relax does not have.
        """
        types = [self.type(index) for index in operator.outputs]
        result_types = types[0] if len(types) == 1 else relax.TupleType(types)
        declared = OPERATORS[operator.op]
        index_positions = (
            () if declared.tensors.state else (*declared.tensors.indices, *declared.tensors.apart)
        )  # what may have fewer bits
        operands = [
            self.get_expr(index) if position in index_positions else self.typed(index)
            for position, index in enumerate(operator.inputs)
            if index >= 0
        ]
        return relax.op.call_pure_packed(f"firmline.{declared.kind}", *operands, ty_args=result_types)

    def typed(self, index: int) -> relax.Expr:
        """Return `get_expr`, but keep the type of 64-bit constants, which Relax turns into indices."""
        value = self.constant(index)
        return self.get_expr(index) if value is None else relax.const(value, str(value.dtype))

    def _quantized_body(self, operator: OperatorInfo, body: Callable[..., relax.Expr]) -> relax.Expr:
        """Return quantize(body(dequantize(x), ...)), or body(x) for results without a scale."""
        inputs, (result,) = self.get_tensors(operator.inputs), self.get_tensors(operator.outputs)
        table = OPERATORS[operator.op].table
        activation = Operation.of(operator, self.info).options(table).get("activation", 0)
        if not result.qnn_params:
            expression = body(*(self.get_expr(tensor.tensor_idx) for tensor in inputs))
            return self.convert_fused_activation_function(expression, activation)
        real = (self.dequantize(self.get_expr(tensor.tensor_idx), tensor) for tensor in inputs)
        expression = self.quantize(body(*real), result)
        info = self.info.tensors[operator.outputs[0]]
        quantization = float(info.scale[0]), int(info.zero_point[0])
        return self.convert_qnn_fused_activation_function(expression, activation, *quantization, info.dtype)

    def fold(self, operator: OperatorInfo) -> bool:
        """Fold a DEQUANTIZE of a constant, such as float16 weights.

        Return whether the operator was folded.
        """
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
        """Return the Relax type of a tensor."""
        tensor = self.info.tensors[index]
        return relax.TensorType(tensor.shape, tensor.dtype)

    def _declared(self, expression: relax.Expr, operator: OperatorInfo) -> relax.Expr:
        """Return `expression`. Raises Unsupported if the file declares other types."""
        # In Relax, SPLIT into one part is a tuple with one element; in the file it is a tensor.
        if isinstance(expression.ty, relax.TupleType) and len(operator.outputs) == 1:
            expression = self.bb.normalize(relax.TupleGetItem(expression, 0))
        types = list(expression.ty.fields) if isinstance(expression.ty, relax.TupleType) else [expression.ty]
        for index, inferred in zip(operator.outputs, types, strict=True):
            tensor, shape = self.info.tensors[index], tuple(int(size) for size in inferred.shape)
            if shape != tensor.shape or str(inferred.dtype.dtype) != tensor.dtype:
                declared = f"{tensor.dtype}{list(tensor.shape)}"
                raise Unsupported(f"gives {inferred.dtype.dtype}{list(shape)}, but the file declares {declared}")
        return expression

    # ---- interface of TVM's converter --------------------------------------------------------------------------

    def get_expr(self, input_tensor_idx: int) -> relax.Expr:
        """Return the expression of a tensor: parameter, intermediate result or constant."""
        index = int(input_tensor_idx)
        if index not in self._data:
            # Some of TVM's conversions require computed data.
            self._data[index] = relax.const(self.constant(index))
        return self._data[index]

    def has_expr(self, input_tensor_idx: int) -> bool:
        """Return whether the tensor has an expression."""
        return int(input_tensor_idx) in self._data

    def is_prefetched(self, input_tensor_idx: int) -> bool:
        """Return False. TVM prefetches sparse tensors by name, and names need not be UTF-8."""
        return False

    def get_tensor_value(self, tensor_wrapper: TensorWrapper, is_sparse: bool = False) -> npt.NDArray[Any]:
        """Return the value of a constant tensor. Raises Unsupported for a computed tensor."""
        index = int(tensor_wrapper.tensor_idx)
        value = self.constant(index)
        if value is None:
            name = self.info.tensors[index].name
            raise Unsupported(f"takes {name!r} from a computed tensor; it must be a constant")
        return value

    def get_tensor_shape(self, tensor_wrapper: TensorWrapper) -> npt.NDArray[Any]:
        """Return the shape of a tensor as int32."""
        return np.array(self.info.tensors[int(tensor_wrapper.tensor_idx)].shape, dtype=np.int32)

    def get_input_tensors(self, op: Any) -> list[TensorWrapper]:
        """Return the inputs without absent ones at the end; TVM would read a bias with index -1."""
        tensors = self.get_tensors(op.InputsAsNumpy())
        while tensors and tensors[-1].tensor_idx < 0:
            tensors.pop()
        return tensors

    def get_tensors(self, tensors_idx_list: Any) -> list[TensorWrapper]:
        """Return wrappers of tensors, with the exact scales of the file.

        Differences from TVM: one zero point may belong to many scales; float tensors and scale 0 have no quantization;
        `axis` counts only for several scales, as exporters write any number there.
        """
        wrappers = []
        for index in (int(i) for i in tensors_idx_list):
            if index < 0:
                wrappers.append(TensorWrapper(index, 0, 0))
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
            wrappers.append(TensorWrapper(index, tensor, self.model.Buffers(tensor.Buffer()), parameters))
        return wrappers

    def has_same_qnn_params(self, lhs_tensor: TensorWrapper, rhs_tensor: TensorWrapper) -> bool:
        """Return whether scale and zero point are equal, without TVM's tolerance of 1e-5."""
        a, b = (self.info.tensors[int(t.tensor_idx)] for t in (lhs_tensor, rhs_tensor))
        return np.array_equal(a.scale, b.scale) and np.array_equal(a.zero_point, b.zero_point)

    # ---- overridden conversions --------------------------------------------------------------------------------

    def dequantize(self, expr: relax.Expr, tensor: TensorWrapper) -> relax.Expr:
        """Dequantize. int64, the bias type of 16-bit activations, is only cast to float32."""
        if self.info.tensors[int(tensor.tensor_idx)].dtype == "int64":
            return relax.op.astype(expr, "float32")
        return super().dequantize(expr, tensor)

    def convert_qnn_fused_activation_function(
        self, expr: relax.Expr, fused_activation_fn: int, scale: float, zero_point: int, dtype: str
    ) -> relax.Expr:
        """Clamp integers as CalculateActivationRangeQuantized does: float32, halves away from zero.

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
        """Multiply rows of `depth` elements for any input shape; TVM requires two axes."""
        tensors, result = self.get_input_tensors(op), self.get_output_tensors(op)[0]
        index = int(tensors[0].tensor_idx)
        data, shape = self.get_expr(index), self.info.tensors[index].shape
        depth = self.info.tensors[int(tensors[1].tensor_idx)].shape[-1]
        rows = int(np.prod(shape)) // depth
        if shape != (rows, depth):
            self._data[index] = relax.op.reshape(data, (rows, depth))
        product = self.bb.normalize(super().convert_fully_connected(op))
        self._data[index] = data
        result_shape = self.info.tensors[int(result.tensor_idx)].shape
        return product if result_shape == (rows, int(product.ty.shape[-1])) else relax.op.reshape(product, result_shape)

    def _convert_reduce(self, relax_op: Callable[..., relax.Expr], op: Any) -> relax.Expr:
        """Reduce. A MEAN of int32 has sums of int64; TVM's has sums of int32, and results of int64."""

        def mean(x: relax.Expr, *options: Any) -> relax.Expr:
            return relax.op.astype(relax.op.mean(relax.op.astype(x, "int64"), *options), "int32")

        dtype = self.info.tensors[int(self.get_input_tensors(op)[0].tensor_idx)].dtype
        reduces = mean if dtype == "int32" and relax_op is relax.op.mean else relax_op
        return super()._convert_reduce(reduces, op)

    def convert_transpose_conv(self, op: Any) -> relax.Expr:
        """Convert with the reference's padding and an activation, which TVM omits.

        In float, one convolution. Quantized, a conv2d_transpose that stages.quantize replaces by convolutions.
        """
        _, kernel, source, *bias = self.get_input_tensors(op)
        result, options = self.get_output_tensors(op)[0], options_of(op, "TransposeConvOptions")
        image, out = (self.info.tensors[int(tensor.tensor_idx)].shape for tensor in (source, result))
        weights, strides = self.get_tensor_value(kernel), (options.StrideH(), options.StrideW())
        axes = [PhaseAxis.of(image[n], out[n], weights.shape[n], strides[n - 1]) for n in (1, 2)]
        data, activation = self.get_expr(source.tensor_idx), options.FusedActivationFunction()
        if not source.qnn_params:
            expression = transposed_convolution(data, weights, axes, out)
            expression = relax.op.add(expression, self.get_expr(bias[0].tensor_idx)) if bias else expression
            return self.convert_fused_activation_function(expression, activation)
        planes = relax.const(np.ascontiguousarray(weights.transpose(3, 0, 1, 2)))
        parameters = kernel.qnn_params
        real = relax.op.dequantize(planes, parameters["scale"], parameters["zero_point"], axis=1)
        (top_pad, bottom_pad), (left_pad, right_pad) = (axis.trimmed for axis in axes)
        expression = relax.op.nn.conv2d_transpose(
            self.dequantize(data, source),
            real,
            strides=strides,
            padding=(top_pad, left_pad, max(0, bottom_pad), max(0, right_pad)),
            output_padding=(max(0, -bottom_pad), max(0, -right_pad)),
            data_layout="NHWC",
            kernel_layout="IOHW",
        )
        expression = (
            relax.op.add(expression, self.dequantize(self.get_expr(bias[0].tensor_idx), bias[0]))
            if bias
            else expression
        )
        info = self.info.tensors[int(result.tensor_idx)]
        quantization = float(info.scale[0]), int(info.zero_point[0])
        expression = self.quantize(expression, result)
        return self.convert_qnn_fused_activation_function(expression, activation, *quantization, info.dtype)

    def convert_batch_matmul(self, op: Any) -> relax.Expr:
        """Convert, also quantized and with batches that broadcast either way, which TVM lacks."""
        tensors, result = self.get_input_tensors(op), self.get_output_tensors(op)[0]
        options = options_of(op, "BatchMatMulOptions") if op.BuiltinOptions() is not None else None
        adjoint = (options.AdjX(), options.AdjY()) if options is not None else (False, False)
        sides = []
        for tensor, exchanged in zip(tensors, adjoint, strict=True):
            side = self.get_expr(tensor.tensor_idx)
            side = self.dequantize(side, tensor) if tensor.qnn_params else side
            axes = [*range(self._rank(tensor) - 2), self._rank(tensor) - 1, self._rank(tensor) - 2]
            sides.append(relax.op.permute_dims(side, axes) if exchanged else side)
        product = relax.op.matmul(*sides)
        return self.quantize(product, result) if result.qnn_params else product

    def convert_softmax(self, op: Any) -> relax.Expr:
        """Convert with beta, which TVM omits.

        In float, beta multiplies the differences from the maximum, as in LiteRT.
        """
        beta = options_of(op, "SoftmaxOptions").Beta()
        if beta == 1.0:
            return super().convert_softmax(op)
        source, result = self.get_input_tensors(op)[0], self.get_output_tensors(op)[0]
        data = self.get_expr(source.tensor_idx)
        real = self.dequantize(data, source) if source.qnn_params else data
        if not source.qnn_params:
            real = relax.op.subtract(real, relax.op.max(real, axis=-1, keepdims=True))
        expression = relax.op.nn.softmax(relax.op.multiply(real, relax.const(beta, "float32")), axis=-1)
        return self.quantize(expression, result) if result.qnn_params else expression

    def convert_gelu(self, op: Any) -> relax.Expr:
        """Convert, also for the tanh approximation, which TVM treats as exact."""
        if options_of(op, "GeluOptions").Approximate():
            return relax.op.nn.gelu_tanh(self.get_expr(self.get_input_tensors(op)[0].tensor_idx))
        return super().convert_gelu(op)

    def convert_l2_normalization(self, op: Any) -> relax.Expr:
        """Convert, also for quantized tensors, which TVM refuses."""
        source, result = self.get_input_tensors(op)[0], self.get_output_tensors(op)[0]
        if not source.qnn_params:
            return super().convert_l2_normalization(op)
        real = self.dequantize(self.get_expr(source.tensor_idx), source)
        squares = relax.op.sum(relax.op.square(real), axis=-1, keepdims=True)
        norm = relax.op.maximum(relax.op.sqrt(squares), relax.const(1e-6, "float32"))
        return self.quantize(relax.op.divide(real, norm), result)
