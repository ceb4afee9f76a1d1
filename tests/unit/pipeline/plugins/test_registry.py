"""Order of the stages, and cost of loading them."""

from pipeline.plugins.registry import default_registry
from pipeline.recipes.targets import load_targets
from stages.ir.models.spec import FileModel
from stages.support.system.installation import INSTALLATION as ROOT


def test_every_source_pattern_matches() -> None:
    """A mistyped pattern would leave code out of the key, and nobody would notice."""
    targets = load_targets(ROOT).values()
    model = FileModel(file="model.tflite")
    patterns = {
        (stage.kind, glob)
        for stage in default_registry()
        for target in targets
        for glob in stage.inputs(stage.config(), model, target).sources
    }
    assert len(patterns) >= 30
    assert [(kind, glob) for kind, glob in patterns if not any(ROOT.glob(glob))] == []
