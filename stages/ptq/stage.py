"""Stage ptq: post-training quantization with value ranges from calibration data.

Runs before import if a recipe has `quantize: {mode: calibrate, …}`. Artifact: model.tflite (integers), which import
reads instead of the recipe's model, and ptq.json (stages.ptq.summary).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from stages.base import Job, Stage, StageConfig, Tool
from stages.import_model.stage import STAGE as IMPORT
from stages.import_model.stage import ImportConfig, known_model
from stages.quantize.options import QuantizeOptions

if TYPE_CHECKING:
    from stages.backends.targets.spec import Target
    from stages.ir.models.spec import ModelSource

GROUP = "ptq"


class PtqConfig(QuantizeOptions, StageConfig):
    __doc__ = QuantizeOptions.__doc__


class PtqStage(Stage[PtqConfig]):
    """The stage: float network and data to an integer TFLite file."""

    kind: ClassVar[str] = "ptq"
    config: ClassVar[type[StageConfig]] = PtqConfig
    options_of = "quantize"
    new_model = True
    sources: ClassVar[tuple[str, ...]] = ("stages/ptq/*.py",)

    def wanted(self, options: Mapping[str, Any]) -> bool:
        """Return whether the recipe quantizes with calibration data."""
        return options.get("mode") == "calibrate"

    def parameters(self, config: PtqConfig) -> dict[str, Any]:
        """Return the options for the action key; the budget of `doit search` is not part of it."""
        return config.model_dump(mode="json", exclude={"kind", "search"})

    def tools(self, config: PtqConfig, target: Target) -> tuple[Tool, ...]:
        """Return the quantizer library, LiteRT and NumPy."""
        return (
            Tool("ai-edge-quantizer", package="ai-edge-quantizer", group=GROUP),
            Tool("litert", package="ai-edge-litert"),
            Tool("numpy", package="numpy"),
        )

    def model_tools(self, model: ModelSource) -> tuple[Tool, ...]:
        """Return import's tools for the model's format."""
        return IMPORT.model_tools(model)

    def files(self, config: PtqConfig, model: ModelSource, root: Path) -> dict[str, Path]:
        """Return model, data and label files. Raises StageError for a glob without a match."""
        from stages.ptq.data import external_files

        return IMPORT.files(ImportConfig(), model, root) | external_files(config, root)

    def model_entry(self, model: ModelSource) -> dict[str, Any]:
        """Return the model's part of the action key, as import does."""
        return IMPORT.model_entry(model)

    def model_code(self, model: ModelSource) -> dict[str, Path]:
        """Return the Python files of a plug-in model, as import does."""
        return IMPORT.model_code(model)

    def preflight(
        self, config: PtqConfig, model: ModelSource, target: Target, root: Path, made: Mapping[str, Path]
    ) -> None:
        """Check local files: a sound float network, and data and labels that fit."""
        from stages.ptq.data import check_data
        from stages.ptq.float_model import check_float

        info = known_model(model, root)
        if info is not None:
            check_float(info, str(getattr(model, "file", "")) or "the model")
        check_data(config, self.files(config, model, root), info)

    def run(self, job: Job[PtqConfig]) -> None:
        """Write the artifact. Raises StageError."""
        from stages.ptq.run import run

        run(job)


STAGE = PtqStage()
