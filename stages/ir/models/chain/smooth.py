"""TFLite file that averages a network's scores over the last runs and decides."""

from fractions import Fraction
from math import floor

import numpy as np

from stages.ir.model_info import TensorInfo
from stages.ir.models.builder import ModelBuilder
from stages.ir.models.chain.spec import Smooth
from stages.ir.models.chain.window import sliding_window
from stages.ir.models.tflite_writer import Tensor
from stages.support.messages.stage_error import StageError, error_at

_TYPES = ("int8", "uint8", "float32")


def smoother(options: Smooth, scores: TensorInfo, source: str, at: tuple[str | int, ...] = ()) -> bytes:
    """Return a file with outputs `score` (input's type) and `detected` (bool): [1, scores].

    A score is the mean as MEAN rounds it. It is compared with the largest value of its type at or below its threshold.
    Raises StageError for a type, index or threshold that does not fit `scores`, an output of `source`. `at` is the
    place of the options in the recipe.
    """
    dtype, elements = scores.dtype, int(np.prod(scores.shape))
    if dtype not in _TYPES or (dtype != "float32" and not scores.scale.size):
        raise StageError(f"{source} writes {dtype}; smooth reads scores of {', '.join(_TYPES)} with a scale")
    index = options.index
    if index is not None and index >= elements:
        message = f"smooth has index {index}; {source} writes {elements} scores, 0 to {elements - 1}"
        raise StageError(message, at=(*at, "index"))
    b = ModelBuilder()
    quantization = (float(scores.scale[0]), int(scores.zero_point[0])) if scores.scale.size else ()
    x = b.input("scores", scores.shape, dtype, *quantization)
    if elements == 1 or index is None:
        score = b.reshape(x, (1, elements), name="row")
    else:
        column = b.reshape(x, (elements, 1), name="column")
        score = b.strided_slice(column, (index, 0), (index + 1, 1), name="element")
    window = sliding_window(b, score, options.window)
    mean = window if options.window == 1 else b.mean(window, (0,), keep_dims=True, name="score")
    detected = b.tensor("detected", mean.shape, "bool")
    with error_at(*at, "threshold"):
        threshold = _thresholds(b, options.threshold, mean, source)
    b.operator("GREATER", [mean, threshold], [detected], "GreaterOptions")
    b.output(mean, detected)
    return b.build()


def _thresholds(b: ModelBuilder, thresholds: float | tuple[float | None, ...], score: Tensor, source: str) -> Tensor:
    """Return the constant that scores are compared with.

    Raises StageError for a list of another length.
    """
    count = score.shape[-1]
    if not isinstance(thresholds, tuple):
        thresholds = (thresholds,) * count
    if len(thresholds) != count:
        scores = "1 score is smoothed" if count == 1 else f"{source} writes {count} scores"
        raise StageError(f"{len(thresholds)} thresholds, but {scores}", hint="state one for each score, null for none")
    if not score.scale:
        values = [np.inf if threshold is None else threshold for threshold in thresholds]
        return b.constant("threshold", np.array([values], np.float32))
    scale, zero_point = score.scale[0], score.zero_point[0]
    integers = [_integer(threshold, scale, zero_point, score.dtype) for threshold in thresholds]
    return b.constant("threshold", np.array([integers], score.dtype), scale, zero_point)


def _integer(threshold: float | None, scale: float, zero_point: int, dtype: str) -> int:
    """Return the largest integer at or below a threshold; the largest of the type for None.

    Raises StageError.
    """
    limits = np.iinfo(dtype)
    if threshold is None:
        return int(limits.max)
    value = floor(Fraction(str(threshold)) / Fraction(scale)) + zero_point
    if not limits.min <= value < limits.max:
        low, high = ((bound - zero_point) * scale for bound in (limits.min, limits.max))
        raise StageError(f"the threshold {threshold:g} is outside of the scores, {low:g} to below {high:g}")
    return value
