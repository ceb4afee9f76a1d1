"""The trained digits network in the repository: it is what its script says, and it classifies."""

import numpy as np
import pytest

from recipes.digits import network, train
from stages.ir.models import tflite_reader
from stages.ir.reference import Reference

FOLDER = train.FOLDER


def committed_parameters() -> network.Parameters:
    """The trained weights, as the float network of the repository has them."""
    model = tflite_reader.read((FOLDER / "digits_float32.tflite").read_bytes())
    weighted = [operator for operator in model.operators if len(operator.inputs) == 3]
    parameters: network.Parameters = {}
    for name, operator in zip(network.SHAPES, weighted, strict=True):
        _, weights, bias = (model.tensors[index] for index in operator.inputs)
        parameters[f"{name}/weights"], parameters[f"{name}/bias"] = weights.values(), bias.values()
    return parameters


@pytest.mark.parametrize("dtype", ["int8", "float32"])
def test_classifies_held_out_images_in_litert(dtype: str) -> None:
    oracle = Reference((FOLDER / f"digits_{dtype}.tflite").read_bytes(), preserve_all=False)
    images = np.load(FOLDER / f"heldout_{dtype}.npy")
    labels = np.load(FOLDER / "labels.npy")
    assert images.shape == (360, 8, 8, 1) and str(images.dtype) == dtype
    guesses = np.array([oracle.run([image[None]])[0].argmax() for image in images])
    assert np.mean(guesses == labels) > 0.95


def test_held_out_images_are_the_data_sets_and_were_not_trained_on() -> None:
    from sklearn.datasets import load_digits

    digits = load_digits()
    train_images, _, held_images, held_labels = train.load()
    assert np.array_equal(np.load(FOLDER / "heldout_float32.npy"), held_images)
    assert np.array_equal(np.load(FOLDER / "labels.npy"), held_labels)
    assert np.array_equal(np.load(FOLDER / "heldout_int8.npy"), train.quantize(held_images))
    together = np.sort(np.concatenate([train_images, held_images]).reshape(len(digits.images), -1), axis=0)
    assert np.array_equal(together, np.sort(digits.data / 16, axis=0).astype(np.float32))


def test_float_network_is_the_one_the_script_writes() -> None:
    written = train.float_model(committed_parameters())
    assert written == (FOLDER / "digits_float32.tflite").read_bytes()


def test_int8_network_is_the_float_one_quantized_by_the_script() -> None:
    """All constants exactly. A scale comes from the sums of another machine's BLAS: their last bits may differ."""
    images, _, _, _ = train.load()
    written = train.int8_model(committed_parameters(), images)
    committed = (FOLDER / "digits_int8.tflite").read_bytes()
    assert len(written) == len(committed)
    ours, theirs = (tflite_reader.read(data) for data in (written, committed))
    assert ours.operators == theirs.operators
    for our, their in zip(ours.tensors, theirs.tensors, strict=True):
        assert (our.name, our.shape, our.dtype, our.axis) == (their.name, their.shape, their.dtype, their.axis)
        assert our.data == their.data, our.name
        assert np.array_equal(our.zero_point, their.zero_point), our.name
        assert np.allclose(our.scale, their.scale, rtol=1e-6, atol=0), our.name


def test_calibration_images_are_of_the_training_images() -> None:
    images, _, _, _ = train.load()
    assert np.array_equal(np.load(FOLDER / "calibration_float32.npy"), images[: train.CALIBRATION])
