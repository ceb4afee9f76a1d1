"""`doit weights`: the blob of a retrained network, verified with the code of the firmware."""

from pathlib import Path

import pytest

from pipeline.api import run_recipe
from pipeline.commands.weights import write_weights
from pipeline.errors import PipelineError
from pipeline.project import Project
from stages.emit.blob import Blob

RECIPE = """\
schema: 1
name: net
target: host
model: {{zoo: autoencoder, seed: 1}}
stages: {{emit: {{weights: {weights}}}, simulate: {{inputs: {{random: 2}}}}}}
"""


@pytest.fixture
def project(tmp_path: Path) -> Project:
    (tmp_path / "recipes").mkdir()
    (tmp_path / "pipeline.yaml").write_text("schema: 1\n")
    (tmp_path / "recipes/net.yaml").write_text(RECIPE.format(weights="caller"))
    return Project(tmp_path)


def test_a_blob_of_other_weights(project: Project, tmp_path: Path) -> None:
    store = tmp_path / "store"
    other = "zoo:autoencoder"  # seed 0
    result = write_weights("net", {"model": other}, project=project, store=store)
    blob = Blob.unpacked((tmp_path / result["file"]).read_bytes())
    run = run_recipe("net", {"model": other}, until="emit", root=project, store=store)
    assert (tmp_path / result["file"]).read_bytes() == (run.artifacts["emit"] / "src/weights.bin").read_bytes()
    own = run_recipe("net", until="tensorize", root=project, store=store)
    assert '"rewrites":null' in (own.artifacts["tensorize"] / "plan.json").read_text().replace(" ", "")
    assert result["fingerprint"] == blob.fingerprint.hex() and result["outputs"] > 0
    again = write_weights("net", {"model": other}, result["file"], "here.bin", project=project, store=store)
    assert (tmp_path / again["file"]).read_bytes() == (tmp_path / result["file"]).read_bytes()


@pytest.mark.parametrize(
    ("weights", "model", "firmware", "said"),
    [
        ("incbin", "zoo:ds_cnn", "", "the weights of recipe 'net' are part of its code"),
        ("caller", "zoo:ds_cnn", "", "zoo:ds_cnn needs other code than the firmware has\nlayers: "),
        ("caller", "zoo:ds_cnn", "none.bin", "firmware=none.bin cannot be read: No such file or directory"),
        ("caller", "zoo:ds_cnn", "recipes/net.yaml", "firmware=recipes/net.yaml: it is not a blob of weights"),
        ("caller", "zoo:autoencoder", "foreign.bin", "firmware= is a blob of another recipe"),
    ],
)
def test_nothing_is_written_for_other_code(
    project: Project, tmp_path: Path, weights: str, model: str, firmware: str, said: str
) -> None:
    (tmp_path / "recipes/net.yaml").write_text(RECIPE.format(weights=weights))
    (tmp_path / "foreign.bin").write_bytes(Blob(bytes(32), b"1234").packed())
    with pytest.raises(PipelineError) as error:
        write_weights("net", {"model": model}, firmware, "out.bin", project=project, store=tmp_path / "store")
    assert said in str(error.value)
    assert not (tmp_path / "out.bin").exists()
