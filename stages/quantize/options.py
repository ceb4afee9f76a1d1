"""Options under `quantize`: types that stay, and quantization of float networks."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from stages.backends.targets.memory import Size
from stages.ir.graph.layer_rules import LayerMatch
from stages.support.options.audio import AudioOptions
from stages.support.options.encoding import Encoding
from stages.support.options.strict_model import StrictModel, mistake
from stages.support.system.pathname import Pathname

Mode = Literal["prequantized", "calibrate"]


class RandomSamples(StrictModel):
    """Uniformly random numbers from `low` to `high`.

    They show that a network can be quantized, not how accurate it is.
    """

    low: float = Field(default=-1.0, gt=-(2.0**100), lt=2.0**100)
    high: float = Field(default=1.0, gt=-(2.0**100), lt=2.0**100)
    seed: int = Field(default=1, ge=0)

    @model_validator(mode="after")
    def _check(self) -> RandomSamples:
        if not self.low < self.high:
            raise mistake(f"should be above low, {self.low:g}", "high", beside=("low",))
        return self


class CalibrationData(StrictModel):
    """Samples on which the float network runs to measure its ranges: `files`, or `random`.

    Files are as in simulate's inputs: a .npy has a leading axis of inferences, a .bin the bytes of exactly one, a .wav
    one for each step of `audio`. They hold float32, or the type in `encoding`.
    """

    files: tuple[Pathname, ...] = ()
    encoding: Encoding | None = None
    audio: AudioOptions | None = None
    random: RandomSamples | None = None

    @model_validator(mode="after")
    def _check(self) -> CalibrationData:
        if bool(self.files) == (self.random is not None):
            raise ValueError("give either files or random")
        for key in ("encoding", "audio"):
            if getattr(self, key) is not None and not self.files:
                raise mistake("needs `files`", key)
        return self


class EvaluationData(StrictModel):
    """Samples on which the float and the quantized network are compared.

    With `labels` (.npy, a class for each) their accuracy is compared.
    """

    files: tuple[Pathname, ...] = Field(min_length=1)
    encoding: Encoding | None = None
    audio: AudioOptions | None = None
    labels: Pathname | None = None


class SearchOptions(StrictModel):
    """Limits of `doit search`.

    Loss in percentage points, RAM in bytes, instructions of one inference.
    """

    max_loss: Annotated[float, Field(ge=0, le=100)] | None = None
    ram: Size | None = None
    instructions: Annotated[int, Field(ge=1)] | None = None
    most: int = Field(default=12, ge=1, le=1000, description="Maximum number of candidates to try.")


class QuantizeOptions(StrictModel):
    """Options of quantize.

    `prequantized` keeps the model's types and scales; float operators stay float. `calibrate` quantizes a float
    network: the stage `ptq` runs it on `data` and measures its ranges. Operators that match `keep_float` stay float,
    those that match `keep_int16` get 16-bit activations. The run fails above `max_loss` (percentage points of accuracy;
    without labels, of cases in which the class with the highest score changes) and below `min_snr` (dB at the outputs).

    `rounding` is for integer networks from ONNX whose sums are of real numbers, so that no rounding gives ONNX
    Runtime's result for every sum.
    """

    mode: Mode = "prequantized"
    data: CalibrationData | None = None
    samples: Annotated[int, Field(ge=1, le=100_000)] | None = Field(
        default=None, description="Number of samples to use, evenly spaced [default: all, at most 500]."
    )
    evaluate: EvaluationData | None = Field(default=None, description="Samples to compare the networks on [data].")
    weights: Literal["int8", "int4"] = "int8"
    activations: Literal["int8", "int16"] = "int8"
    per_channel: bool = Field(default=True, description="One weight scale per output channel, else one per tensor.")
    keep_float: tuple[LayerMatch, ...] = ()
    keep_int16: tuple[LayerMatch, ...] = ()
    ranges: Literal["minmax", "percentile", "mse"] = Field(
        default="minmax",
        description="All measured values, the share `percentile` of them, or the least mean squared error.",
    )
    percentile: Annotated[float, Field(ge=90, lt=100)] | None = Field(
        default=None, description="With ranges: percentile, percent of a tensor's nonzero values [99.99]."
    )
    equalize: bool = Field(
        default=False, description="Rescale the channels between consecutive layers, to equalize their weights."
    )
    bias_correction: bool = Field(default=False, description="Subtract from biases the mean error of rounded weights.")
    max_loss: Annotated[float, Field(ge=0, le=100)] | None = None
    min_snr: float | None = None
    rounding: Literal["once", "twice"] = Field(
        default="once",
        description="once: to the nearest integer. twice: as TFLite, for all fast kernels, with more near ties.",
    )
    search: SearchOptions | None = None

    @model_validator(mode="after")
    def _check(self) -> QuantizeOptions:
        if self.mode == "prequantized":
            misplaced = sorted(
                name for name in self.model_fields_set - {"mode", "kind", "rounding"} if getattr(self, name) is not None
            )
            if misplaced:
                raise mistake("needs mode: calibrate", misplaced[0], key=True, beside=self._beside("mode"))
        elif "rounding" in self.model_fields_set:
            raise mistake("needs mode: prequantized", "rounding", key=True, beside=self._beside("mode"))
        elif self.percentile is not None and self.ranges != "percentile":
            raise mistake("needs ranges: percentile", "percentile", key=True, beside=self._beside("ranges"))
        elif (self.weights, self.activations) == ("int4", "int16"):
            raise mistake("needs activations: int8", "weights", beside=("activations",))
        elif self.data is None:
            raise mistake("calibrate needs data: {files: [...]}, or data: {random: {}}", "mode")
        return self

    def _beside(self, name: str) -> tuple[Any, ...]:
        return (name,) if name in self.model_fields_set else ()
