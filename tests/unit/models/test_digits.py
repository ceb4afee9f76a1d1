"""The trained digits network in the repository: it is what its script says, and it classifies."""

import numpy as np
import pytest
from sklearn.datasets import load_digits

from recipes.digits import network, train
from stages.reference import Reference

FOLDER = train.FOLDER


@pytest.mark.parametrize("dtype", ["int8", "float32"])
def test_classifies_held_out_images_in_litert(dtype: str) -> None:
    oracle = Reference((FOLDER / f"digits_{dtype}.tflite").read_bytes(), preserve_all=False)
    images = np.load(FOLDER / f"heldout_{dtype}.npy")
    labels = np.load(FOLDER / "labels.npy")
    assert images.shape == (360, 8, 8, 1) and str(images.dtype) == dtype
    guesses = np.array([oracle.run([image[None]])[0].argmax() for image in images])
    assert np.mean(guesses == labels) > 0.95


def test_held_out_images_are_the_data_sets_and_were_not_trained_on() -> None:
    digits = load_digits()
    train_images, _, held_images, held_labels = train.load()
    assert np.array_equal(np.load(FOLDER / "heldout_float32.npy"), held_images)
    assert np.array_equal(np.load(FOLDER / "labels.npy"), held_labels)
    assert np.array_equal(np.load(FOLDER / "heldout_int8.npy"), train.quantize(held_images))
    together = np.sort(np.concatenate([train_images, held_images]).reshape(len(digits.images), -1), axis=0)
    assert np.array_equal(together, np.sort(digits.data / 16, axis=0).astype(np.float32))


def test_gradients_agree_with_finite_differences() -> None:
    random = np.random.RandomState(3)
    parameters = {name: value.astype(np.float64) for name, value in network.initial(random).items()}
    # Away from zero, so that no step of the difference crosses a kink of ReLU.
    for name, value in parameters.items():
        if name.endswith("bias"):
            value += 0.5
    images = random.random_sample((3, 8, 8, 1))
    labels = np.array([1, 7, 4])
    loss, slopes = network.gradients(parameters, images, labels)
    assert loss > 0
    step = 1e-3
    for name, value in parameters.items():
        index = tuple(random.randint(size) for size in value.shape)
        kept = value[index]
        value[index] = kept + step
        above, _ = network.gradients(parameters, images, labels)
        value[index] = kept - step
        below, _ = network.gradients(parameters, images, labels)
        value[index] = kept
        assert slopes[name][index] == pytest.approx((above - below) / (2 * step), abs=2e-3, rel=0.05), name
