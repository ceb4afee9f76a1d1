"""One-operator models (`model: {op: conv2d, ...}`) as TFLite files."""

from stages.ir.models.builder import BuildError, ModelBuilder
from stages.ir.models.spec import OpModel
from stages.ir.operators.single_operator import SingleOperatorBuilder
from stages.ir.operators.table import operator_of
from stages.support.messages.stage_error import StageError


def build(spec: OpModel) -> bytes:
    """Return the TFLite file of a one-operator model. Raises StageError for contradictions."""
    model = SingleOperatorBuilder(spec, ModelBuilder())
    declared = operator_of(spec.op)
    assert declared is not None and declared.model is not None
    try:
        x = model.builder.input("x", model.shape, spec.dtype, *(model.quant or (None,)))
        y = declared.model.build(model, x)
        model.builder.output(*(y if isinstance(y, list) else [y]))
        return bytes(model.builder.build())
    except BuildError as error:
        what = str(error).removeprefix(f"{spec.op}: ")  # the only layer's name
        raise StageError(f"model op {spec.op!r}: {what}", at=("model",)) from None
