"""The verify stage."""

from __future__ import annotations

import json
from typing import ClassVar

from pydantic import Field

from stages.backends.targets.spec import Target
from stages.base import Job, Stage, StageConfig, Tool
from stages.ir.models.spec import ModelSource, is_onnx
from stages.support.messages import escape
from stages.verify.reference_name import reference_name


class VerifyConfig(StageConfig):
    """Integer tensors are compared byte for byte, always; `tolerance` is for float32 outputs only.

    Where an engine's own arithmetic is what the network means (`requantize: engine` of tensorize), they are compared
    with that, and `max_difference` and `max_share` say how far outputs may be from LiteRT's.
    """

    tolerance: float = Field(
        default=1e-4,
        ge=0,
        description="largest difference of a float32 output, relative to the largest magnitude in that output",
    )
    max_difference: float | None = Field(
        default=None, ge=0, description="largest difference of an output from LiteRT's, with an engine's own arithmetic"
    )
    max_share: float | None = Field(
        default=None, ge=0, le=1, description="share of output values that may differ from LiteRT's then"
    )


class Verify(Stage[VerifyConfig]):
    """Runs LiteRT on the inputs that the simulator was fed and compares outputs and every traced layer."""

    kind: ClassVar[str] = "verify"
    config: ClassVar[type[StageConfig]] = VerifyConfig
    consumes: ClassVar[tuple[str, ...]] = ("import", "quantize", "emit", "simulate")
    sources: ClassVar[tuple[str, ...]] = ("stages/verify/*.py",)

    def tools(self, config: VerifyConfig, target: Target) -> tuple[Tool, ...]:
        """LiteRT is the reference."""
        return (Tool("litert", package="ai-edge-litert"),)

    def model_tools(self, model: ModelSource) -> tuple[Tool, ...]:
        """ONNX Runtime is the reference of ONNX files."""
        if not is_onnx(model):
            return ()
        return (Tool("onnx", package="onnx", group="onnx"), Tool("onnxruntime", package="onnxruntime", group="onnx"))

    def run(self, job: Job[VerifyConfig]) -> None:
        """Writes verify.json. Raises StageError, naming the first layer that differs, when anything does."""
        from stages.verify.child import check_in_child
        from stages.verify.graph_reference import check_bounds

        model = job.inputs["import"] / "model.tflite"
        quantized, emitted, simulated = (job.inputs[kind] for kind in ("quantize", "emit", "simulate"))
        result = check_in_child(model, quantized, emitted, simulated, job.config.tolerance, job.progress)
        distance = result["distance"]
        if distance is not None:
            near_ties = result.get("near_ties") is not None
            check_bounds(distance, job.config.max_difference, job.config.max_share, near_ties=near_ties)
        (job.out / "verify.json").write_text(json.dumps(result, indent=1) + "\n")
        job.log(
            f"{result['inputs']} inferences, {result['outputs_checked']} output values and {result['layers_checked']} "
            f"layers equal {result['reference']}"
        )
        if distance is not None:
            job.log(
                "outputs: {differing} of {values} differ from the reference's, by {largest:g} at most".format(
                    **distance["outputs"]
                )
            )
        for name, ties in ((result.get("near_ties") or {}).get("layers") or {}).items():
            job.log(
                f"{escape.quoted(name)}: {ties['near']} of {ties['values']} sums of real numbers are near ties, "
                f"{ties['differing']} round otherwise"
            )
        for name, tensor in result["overflowed"].items():
            whose, where = reference_name(result["reference"]), f"first in {escape.quoted(tensor)}"
            job.log(f"warning: {name} is not verified: {whose}'s own results leave float32's range, {where}")
        for name, tensor in result["tied"].items():
            told = "what lies behind is not verified"
            job.log(f"warning: {name}: float numbers round the other way in {escape.quoted(tensor)}, {told}")


STAGE = Verify()
