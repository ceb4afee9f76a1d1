"""Options of all front ends, and the features that the next part of a chain reads."""

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from stages.support.options.strict_model import StrictModel, mistake

Milliseconds = Annotated[float, Field(gt=0, le=10_000)]


@dataclass(frozen=True)
class Features:
    """Features of one run, frames x channels, in the type of the next part.

    frames      new frames per run
    dtype       int8, uint8, int16 or float32
    scale       of the quantization; None for float32, and to let the front end choose
    zero_point  of the quantization
    """

    frames: int = 1
    dtype: str = "int16"
    scale: float | None = None
    zero_point: int = 0


class Frontend(StrictModel):
    """Options of every front end. `kind` is the name of its module; build.py builds its file.

    sample_rate  of the sound in Hz
    window_ms    duration of a frame
    step_ms      time from one frame to the next
    frames       new frames per run; None: all that a network with state reads, else one
    """

    kind: str
    sample_rate: int = Field(default=16_000, ge=1_000, le=192_000)
    window_ms: Milliseconds = 30.0
    step_ms: Milliseconds = 10.0
    frames: Annotated[int, Field(ge=1, le=1_000)] | None = None

    @property
    def frame_size(self) -> int:
        """Samples of a frame."""
        return int(self.window_ms * self.sample_rate / 1000)

    @property
    def frame_step(self) -> int:
        """Samples from one frame to the next."""
        return int(self.step_ms * self.sample_rate / 1000)

    @property
    def feature_channels(self) -> int:
        """Features of a frame."""
        raise NotImplementedError

    def check_frame(self) -> None:
        """Raise an error for a frame without samples or shorter than its step."""
        for key, samples in (("window_ms", self.frame_size), ("step_ms", self.frame_step)):
            if samples < 1:
                value = getattr(self, key)
                raise mistake(f"{value:g} ms at {self.sample_rate} Hz is less than one sample", key)
        if self.frame_step > self.frame_size:
            raise mistake(f"is longer than the frame of {self.window_ms:g} ms", "step_ms", beside=("window_ms",))
