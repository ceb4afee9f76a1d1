"""Build TFLite files of TFLM's signal operators."""

from typing import Any

from stages.ir.models.builder import ModelBuilder, Tensor


class SignalBuilder(ModelBuilder):
    """A front end under construction for `frames` frames per run.

    With one frame, tensors of features have no axis of frames, as TFLM's own interpreter needs them.
    """

    def __init__(self, frames: int) -> None:
        super().__init__()
        self.frames = frames
        self.leading = (frames,) if frames > 1 else ()

    def rows(self, name: str, size: int, dtype: str, scale: float | None = None) -> Tensor:
        """Declare a tensor of `size` elements per frame."""
        return self.tensor(name, (*self.leading, size), dtype, scale)

    def signal(self, name: str, inputs: list[Tensor], results: list[Tensor], **options: Any) -> Tensor:
        """Append the operator Signal`name` with its options; return its first result."""
        from flatbuffers import flexbuffers

        self.operator(f"CUSTOM:Signal{name}", inputs, results, custom=bytes(flexbuffers.Dumps(options)))
        return results[0]

    def framed(self, size: int, step: int) -> Tensor:
        """Append the input `samples` and its overlapping frames.

        samples  int16[1, frames * step]
        result   int16[frames, size]
        """
        samples = self.input("samples", (1, self.frames * step), "int16")
        framed = self.tensor("framed", (1, self.frames, size), "int16")
        results = [framed, self.tensor("framed/valid", (), "bool")]
        self.signal("Framer", [samples], results, frame_size=size, frame_step=step, prefill=True)
        return self.reshape(framed, (*self.leading, size), name="frames")
