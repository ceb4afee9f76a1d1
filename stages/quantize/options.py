"""The options under `quantize`: what of a network's types is kept, and how a float network is made integer."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from stages.backends.targets.memory import Size
from stages.ir.graph.layer_rules import LayerMatch
from stages.support.options.encoding import Encoding
from stages.support.options.strict_model import StrictModel, mistake
from stages.support.system.pathname import Pathname

Mode = Literal["prequantized", "calibrate"]


class RandomSamples(StrictModel):
    """Numbers drawn evenly from `low` to `high`: they show no accuracy, only that a network can be quantized."""

    low: float = Field(default=-1.0, gt=-(2.0**100), lt=2.0**100)
    high: float = Field(default=1.0, gt=-(2.0**100), lt=2.0**100)
    seed: int = Field(default=1, ge=0)

    @model_validator(mode="after")
    def _check(self) -> RandomSamples:
        if not self.low < self.high:
            raise mistake(f"should be above low, {self.low:g}", "high", beside=("low",))
        return self


class CalibrationData(StrictModel):
    """What the float network is run on to see the ranges of its tensors: `files`, or `random`.

    Files are as those of simulate's inputs: a .npy has a leading axis of inferences, a .bin the bytes of exactly one.
    They hold float32, or what `encoding` says.
    """

    files: tuple[Pathname, ...] = ()
    encoding: Encoding | None = None
    random: RandomSamples | None = None

    @model_validator(mode="after")
    def _check(self) -> CalibrationData:
        if bool(self.files) == (self.random is not None):
            raise ValueError("give either files or random")
        if self.encoding is not None and not self.files:
            raise mistake("is of files, and there are none", "encoding")
        return self


class EvaluationData(StrictModel):
    """What float and quantized network are compared on; with `labels` (.npy, a class for each) by their accuracy."""

    files: tuple[Pathname, ...] = Field(min_length=1)
    encoding: Encoding | None = None
    labels: Pathname | None = None


class SearchOptions(StrictModel):
    """What `doit search` may come to: loss in percentage points, RAM in bytes, instructions of one inference."""

    max_loss: Annotated[float, Field(ge=0, le=100)] | None = None
    ram: Size | None = None
    instructions: Annotated[int, Field(ge=1)] | None = None
    most: int = Field(default=12, ge=1, le=1000, description="How many candidates are tried.")


class QuantizeOptions(StrictModel):
    """Options of quantize.

    `prequantized` keeps the model's own types and scales; float operators stay float. `calibrate` makes integers of a
    float network: the stage `ptq` runs it on `data` and quantizes it by the ranges that it sees. `keep_float` and
    `keep_int16` are rules: the operators that one fits stay float, or get 16-bit activations. `max_loss` (percentage
    points of accuracy; without labels, of cases in which the class with the highest score changes) and `min_snr` (dB
    at the outputs) are what the run fails beyond.

    `rounding` is of integer networks from ONNX whose sums are of real numbers there, so that no rounding is ONNX
    Runtime's for every sum.
    """

    mode: Mode = "prequantized"
    data: CalibrationData | None = None
    samples: Annotated[int, Field(ge=1, le=100_000)] | None = Field(
        default=None, description="How many of the data are used, evenly chosen [default: all, at most 500]."
    )
    evaluate: EvaluationData | None = Field(default=None, description="What the networks are compared on [data].")
    weights: Literal["int8", "int4"] = "int8"
    activations: Literal["int8", "int16"] = "int8"
    per_channel: bool = Field(default=True, description="A scale of weights for each output channel, or one for all.")
    keep_float: tuple[LayerMatch, ...] = ()
    keep_int16: tuple[LayerMatch, ...] = ()
    ranges: Literal["minmax", "percentile", "mse"] = Field(
        default="minmax",
        description="All that was seen, the share `percentile` of it, or what makes the mean squared error least.",
    )
    percentile: Annotated[float, Field(ge=90, lt=100)] | None = Field(
        default=None, description="Percent of a tensor's values that are not 0 [99.99]; with ranges: percentile."
    )
    equalize: bool = Field(
        default=False, description="Scale the channels of layers in a row against each other, for equal weights."
    )
    bias_correction: bool = Field(
        default=False, description="Take from biases what rounded weights add to the outputs on average."
    )
    max_loss: Annotated[float, Field(ge=0, le=100)] | None = None
    min_snr: float | None = None
    rounding: Literal["once", "twice"] = Field(
        default="once",
        description="Sums to the nearest integer; or as TFLite's, which all fast kernels compute, with more near ties.",
    )
    search: SearchOptions | None = None

    @model_validator(mode="after")
    def _check(self) -> QuantizeOptions:
        if self.mode == "prequantized":
            given = sorted(
                name for name in self.model_fields_set - {"mode", "kind", "rounding"} if getattr(self, name) is not None
            )
            if given:
                raise mistake("goes with mode: calibrate", given[0], key=True, beside=self._beside("mode"))
        elif "rounding" in self.model_fields_set:
            raise mistake("goes with mode: prequantized", "rounding", key=True, beside=self._beside("mode"))
        elif self.percentile is not None and self.ranges != "percentile":
            raise mistake("goes with ranges: percentile", "percentile", key=True, beside=self._beside("ranges"))
        elif (self.weights, self.activations) == ("int4", "int16"):
            raise mistake("goes with activations: int8", "weights", beside=("activations",))
        elif self.data is None:
            raise mistake("calibrate needs data: {files: [...]}, or data: {random: {}}", "mode")
        return self

    def _beside(self, name: str) -> tuple[Any, ...]:
        return (name,) if name in self.model_fields_set else ()
