"""TFLite file that averages a network's score over the last runs and decides."""

from __future__ import annotations

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
    """Return a file with the outputs `score`, as the input's element, and `detected`, bool[1, 1].

    The score is the mean as MEAN rounds it. It is compared with the largest value of its type at or below the
    threshold. Raises StageError for a type, index or threshold that does not fit `scores`, an output of `source`.
    `at` is the place of the options in the recipe.
    """
    dtype, elements = scores.dtype, int(np.prod(scores.shape))
    if dtype not in _TYPES or (dtype != "float32" and not scores.scale.size):
        raise StageError(f"{source} writes {dtype}; smooth reads scores of {', '.join(_TYPES)} with a scale")
    index = options.index if options.index is not None else 0
    if elements > 1 and options.index is None:
        raise StageError(
            f"{source} writes {elements} scores",
            hint=f"select one with smooth: {{index: 0}} to {elements - 1}",
            at=at,
        )
    if index >= elements:
        message = f"smooth has index {index}; {source} writes {elements} scores, 0 to {elements - 1}"
        raise StageError(message, at=(*at, "index"))
    b = ModelBuilder()
    quantization = (float(scores.scale[0]), int(scores.zero_point[0])) if scores.scale.size else ()
    x = b.input("scores", scores.shape, dtype, *quantization)
    flat = b.reshape(x, (elements, 1), name="column")
    score = flat if elements == 1 else b.strided_slice(flat, (index, 0), (index + 1, 1), name="element")
    window = sliding_window(b, score, options.window)
    mean = window if options.window == 1 else b.mean(window, (0,), keep_dims=True, name="score")
    detected = b.tensor("detected", (1, 1), "bool")
    with error_at(*at, "threshold"):
        threshold = _threshold(b, options, mean)
    b.operator("GREATER", [mean, threshold], [detected], "GreaterOptions")
    b.output(mean, detected)
    return b.build()


def _threshold(b: ModelBuilder, options: Smooth, score: Tensor) -> Tensor:
    """Return the constant that scores are compared with."""
    if not score.scale:
        return b.constant("threshold", np.full((1, 1), options.threshold, np.float32))
    scale, zero_point = score.scale[0], score.zero_point[0]
    limits = np.iinfo(score.dtype)
    value = floor(Fraction(str(options.threshold)) / Fraction(scale)) + zero_point
    if not limits.min <= value < limits.max:
        low, high = ((bound - zero_point) * scale for bound in (limits.min, limits.max))
        raise StageError(f"the threshold {options.threshold:g} is outside of the scores, {low:g} to below {high:g}")
    return b.constant("threshold", np.full((1, 1), value, score.dtype), scale, zero_point)
