"""Options of the simulate stage."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from stages.backends.hardware.place import check_place
from stages.base import StageConfig
from stages.support.options.audio import AudioOptions
from stages.support.options.encoding import Encoding
from stages.support.options.strict_model import mistake
from stages.support.system.pathname import Pathname


class InputsConfig(StageConfig):
    """Inputs of the run, in this order: random values, extremes, files.

    `random` is the number of inferences with random values from `seed`, over the full range of the input's type
    (float32: -1 to 1; indices: the range of the tensor that they index).
    `extremes` adds an inference with the minimum everywhere, and one with the maximum.
    `files` are paths or globs relative to the project's root. `**` matches any folder; names that begin with a dot are
    skipped. A .bin has the bytes of one inference (all inputs concatenated). A .npy has a leading axis of inferences;
    float32 is also allowed for quantized inputs. A .wav has an inference for each step of `audio`. `encoding` is the
    encoding of the files' numbers, if it differs from the network's.
    With state, each of `random` and `extremes` is a sequence of `steps` inferences, and each file is a sequence. The
    state is reset before each sequence. The default is 8 steps; for an incremental network 8 more than fill its window.
    `labels` is a .npy with the class of each inference from `files`; for WAV files also a .csv or .tsv with the columns
    file, start, end and class, or Audacity's label tracks, such as labels/*.txt. [] states that no keyword is spoken in
    any WAV file.
    """

    random: int = Field(default=4, ge=0, le=10_000)
    seed: int = Field(default=1, ge=0)
    extremes: bool = True
    steps: int | None = Field(default=None, ge=1, le=10_000)
    files: tuple[Pathname, ...] = ()
    encoding: Encoding | None = None
    audio: AudioOptions | None = None
    labels: Pathname | tuple[()] | None = None

    @model_validator(mode="after")
    def _check(self) -> InputsConfig:
        for key in ("encoding", "audio"):
            if getattr(self, key) is not None and not self.files:
                raise mistake("needs `files`", key)
        return self


class SimulateConfig(StageConfig):
    """Options of the simulate stage.

    `trace` records every layer's output for verify. `timeout` is in seconds, for all inferences.
    `instruction_limit` is for one inference. The error names the source line. The default is a multiple of the
    expected instructions; 0 disables it. It also limits the run, to 10^9 instructions more than all inferences may
    need, and on `host`, which has no counter, by processor time.
    `cycles` estimates the cycles of the first inference in a second run, if the target has a timing model.
    `run_on` is a board at gdb://HOST:PORT instead of a simulator (docs/how-to/hardware.md). Then a layer may take at
    most `stall_seconds`, `timeout` includes transfers, and `instruction_limit` has no effect.
    """

    kind: Literal["simulate"] = "simulate"
    inputs: InputsConfig = InputsConfig()
    trace: bool = True
    timeout: float = Field(default=1800, gt=0, le=10_000_000)
    instruction_limit: int | None = Field(default=None, ge=0)
    cycles: bool = True
    run_on: Annotated[str, AfterValidator(check_place)] | None = None
    stall_seconds: float | None = Field(default=None, gt=0, le=1_000_000)
