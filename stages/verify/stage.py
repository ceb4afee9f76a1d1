"""The verify stage."""

import json
from typing import ClassVar

from pydantic import Field

from stages.backends.targets.spec import Target
from stages.base import ActionInputs, Job, Stage, StageConfig, Tool
from stages.ir.models.sources import ModelSource, networks_of
from stages.ir.models.spec import is_onnx
from stages.support.messages import escape
from stages.verify.reference_name import reference_name


class VerifyConfig(StageConfig):
    """Options of the verify stage.

    Integers are always compared byte for byte; `tolerance` is for float32 outputs only.

    With tensorize's `requantize: engine`, outputs are compared with the accelerator's own arithmetic. `max_difference`
    and `max_share` then limit the difference from LiteRT.
    """

    tolerance: float = Field(
        default=1e-4,
        ge=0,
        description="largest difference of a float32 output, relative to the largest magnitude in that output",
    )
    max_difference: float | None = Field(
        default=None,
        ge=0,
        description="largest difference of an output from LiteRT's, with an accelerator's own arithmetic",
    )
    max_share: float | None = Field(
        default=None,
        ge=0,
        le=1,
        description="largest share of output values that differ from LiteRT's, with an accelerator's own arithmetic",
    )


class Verify(Stage[VerifyConfig]):
    """Stage that compares outputs and traced layers with the reference on equal inputs."""

    kind: ClassVar[str] = "verify"
    config: ClassVar[type[StageConfig]] = VerifyConfig
    consumes: ClassVar[tuple[str, ...]] = ("import", "quantize", "emit", "simulate")

    def inputs(self, config: VerifyConfig, model: ModelSource, target: Target) -> ActionInputs:
        """Return the reference: LiteRT, ONNX Runtime, or TFLM for its signal operators."""
        from stages.ir.models.signal_operators import TFLM, has_signal_operators

        onnx = (Tool("onnx", package="onnx", group="onnx"), Tool("onnxruntime", package="onnxruntime", group="onnx"))
        return ActionInputs(
            tools=(Tool("litert", package="ai-edge-litert"), *(onnx if any(map(is_onnx, networks_of(model))) else ())),
            file_tools=lambda root: (TFLM,) if has_signal_operators(model, root) else (),
            sources=("stages/verify/*.py",),
        )

    def run(self, job: Job[VerifyConfig]) -> None:
        """Write verify.json. Raises StageError with the first layer that differs."""
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
        if window := result.get("whole_window"):
            job.log(
                f"all {window['inputs']} outputs equal those of the network over the whole window of "
                f"{window['window']} frames (zeros before the first run)"
            )
        if distance is not None:
            job.log(
                "outputs: {differing} of {values} values differ from the reference, by at most {largest:g}".format(
                    **distance["outputs"]
                )
            )
        for name, ties in ((result.get("near_ties") or {}).get("layers") or {}).items():
            job.log(
                f"{escape.quoted(name)}: {ties['near']} of {ties['values']} sums are near ties, "
                f"{ties['differing']} round differently"
            )
        for name, tensor in result["overflowed"].items():
            reference = reference_name(result["reference"])
            job.log(f"warning: {name} is not verified: {reference} overflows float32 in {escape.quoted(tensor)}")
        for name, tensor in result["tied"].items():
            reason = f"near ties in {escape.quoted(tensor)} round differently"
            job.log(f"warning: {name}: {reason}; layers after it are not verified")


STAGE = Verify()
