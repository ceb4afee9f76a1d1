"""Stage ptq: post-training quantization with value ranges from calibration data.

Runs before import if a recipe has `quantize: {mode: calibrate, …}`. Artifact: model.tflite (integers), which import
reads instead of the recipe's model, and ptq.json (stages.ptq.summary).
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from stages.backends.targets.spec import Target
from stages.base import ActionInputs, Job, Stage, StageConfig, StageError, Tool
from stages.import_model.model_files import model_files, model_inputs
from stages.import_model.stage import known_model
from stages.ir.models.chain.spec import ChainModel
from stages.ir.models.sources import ModelSource
from stages.ptq.config import PtqConfig

GROUP = "ptq"


class PtqStage(Stage[PtqConfig]):
    """The stage: float network and data to an integer TFLite file."""

    kind: ClassVar[str] = "ptq"
    config: ClassVar[type[StageConfig]] = PtqConfig
    options_of = "quantize"
    new_model = True

    def wanted(self, options: Mapping[str, Any]) -> bool:
        """Return whether the recipe quantizes with calibration data."""
        return options.get("mode") == "calibrate"

    def parameters(self, config: PtqConfig) -> dict[str, Any]:
        """Return the options for the action key; the budget of `doit search` is not part of it."""
        return config.model_dump(mode="json", exclude={"kind", "search"})

    def inputs(self, config: PtqConfig, model: ModelSource, target: Target) -> ActionInputs:
        """Return quantizer library, LiteRT, NumPy, the model, and the files with data and labels."""
        own = ActionInputs(
            tools=(
                Tool("ai-edge-quantizer", package="ai-edge-quantizer", group=GROUP),
                Tool("litert", package="ai-edge-litert"),
                Tool("numpy", package="numpy"),
            ),
            files=lambda root: _data_files(config, root),
            sources=("stages/ptq/*.py",),
        )
        return own | model_inputs(model)

    def preflight(
        self, config: PtqConfig, model: ModelSource, target: Target, root: Path, artifacts: Mapping[str, Path]
    ) -> None:
        """Check local files: a sound float network, and data and labels that fit."""
        from stages.ir.samples.wav import model_rate
        from stages.ptq.data import check_data
        from stages.ptq.float_model import check_float

        if isinstance(model, ChainModel):
            raise StageError(
                "`mode: calibrate` quantizes one network, not a chain",
                hint="Quantize the network in a separate recipe, and use its model.tflite in the chain.",
                at=("model", "chain"),
            )
        info = known_model(model, root)
        if info is not None:
            check_float(info, str(getattr(model, "file", "")) or "the model")
        check_data(config, model_files(model, root) | _data_files(config, root), info, model_rate(model))

    def run(self, job: Job[PtqConfig]) -> None:
        """Write the artifact. Raises StageError."""
        from stages.ptq.run import run

        run(job)


def _data_files(config: PtqConfig, root: Path) -> dict[str, Path]:
    """Return the files with data and labels. Raises StageError for a glob without a match."""
    from stages.ptq.data import external_files

    return external_files(config, root)


STAGE = PtqStage()
