"""Trains a small network on digits in PyTorch and writes it as ONNX, in float32 and quantized in all forms.

With torch and scikit-learn beside Firmline's own packages and those of the group onnx, from the project's root:

    python -m recipes.onnx.train

Data as in recipes/digits/train.py. Written beside this file, the network once by torch.onnx, then by ONNX Runtime's
static quantization with the training images:

    digits.onnx              float32
    digits_qdq.onnx          DequantizeLinear, operator, QuantizeLinear: int8, a scale for each channel
    digits_qdq_u8.onnx       the same: uint8 activations and weights, one scale for each tensor
    digits_qlinear.onnx      QLinearConv, QLinearAdd, QGemm: uint8 activations, int8 weights per channel

Takes some ten seconds; PyTorch sums in another order on another machine, so its last bits may differ there.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
import torch
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static
from onnxruntime.quantization.shape_inference import quant_pre_process
from torch import nn

from recipes.digits.train import load

FOLDER = Path(__file__).parent
SEED, EPOCHS, BATCH, RATE = 1797, 25, 32, 3e-3


class Digits(nn.Module):
    """conv 16, depthwise and 1x1 24, residual 24, max pool, conv 32 of stride 2, dense 10; [N, 1, 8, 8] images."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(1, 16, 3, padding=1)
        self.depthwise = nn.Conv2d(16, 16, 3, padding=1, groups=16)
        self.pointwise = nn.Conv2d(16, 24, 1)
        self.residual = nn.Conv2d(24, 24, 3, padding=1)
        self.strided = nn.Conv2d(24, 32, 3, stride=2, padding=1)
        self.pool, self.relu, self.relu6 = nn.MaxPool2d(2), nn.ReLU(), nn.ReLU6()
        self.dense = nn.Linear(128, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.relu(self.conv(x))
        x = self.relu(self.pointwise(self.relu6(self.depthwise(x))))
        x = self.relu(x + self.residual(x))
        x = self.relu(self.strided(self.pool(x)))
        return self.dense(torch.flatten(x, 1))


class Images(CalibrationDataReader):
    """One image after the other."""

    def __init__(self, images: np.ndarray) -> None:
        self._images: Iterator[np.ndarray] = iter(images)

    def get_next(self) -> dict[str, np.ndarray] | None:
        image = next(self._images, None)
        return None if image is None else {"images": image[None]}


def train(images: np.ndarray, labels: np.ndarray) -> Digits:
    torch.manual_seed(SEED)
    random, model = np.random.RandomState(SEED), Digits()
    steps = EPOCHS * (len(images) // BATCH)
    optimizer = torch.optim.Adam(model.parameters(), lr=RATE)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    for _ in range(EPOCHS):
        order = random.permutation(len(images))
        for start in range(0, len(images) - BATCH + 1, BATCH):
            batch = order[start : start + BATCH]
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(torch.from_numpy(images[batch])), torch.from_numpy(labels[batch]))
            loss.backward()
            optimizer.step()
            schedule.step()
    return model.eval()


def plain(model: onnx.ModelProto) -> None:
    """Takes out what the exporter says of the machine: stack traces, names of files."""
    for part in (model, model.graph, *model.graph.node, *model.graph.initializer, *model.graph.value_info):
        part.doc_string = ""
        del part.metadata_props[:]


def main() -> None:
    images, labels, held, held_labels = load()
    images, held = (np.ascontiguousarray(part.transpose(0, 3, 1, 2)) for part in (images, held))
    model = train(images, labels)
    found = model(torch.from_numpy(held)).argmax(dim=1).numpy()
    print(f"{(found == held_labels).mean():.2%} of {len(held)} held-out images")
    floats = FOLDER / "digits.onnx"
    names = {"input_names": ["images"], "output_names": ["logits"]}
    torch.onnx.export(model, (torch.from_numpy(held[:1]),), str(floats), dynamo=True, external_data=False, **names)
    forms = {
        "digits_qdq": (QuantFormat.QDQ, QuantType.QInt8, QuantType.QInt8, True),
        "digits_qdq_u8": (QuantFormat.QDQ, QuantType.QUInt8, QuantType.QUInt8, False),
        "digits_qlinear": (QuantFormat.QOperator, QuantType.QUInt8, QuantType.QInt8, True),
    }
    with tempfile.TemporaryDirectory() as folder:
        prepared = Path(folder) / "prepared.onnx"
        quant_pre_process(str(floats), str(prepared))
        for name, (form, activations, weights, per_channel) in forms.items():
            quantize_static(
                str(prepared),
                str(FOLDER / f"{name}.onnx"),
                Images(images[:200]),
                quant_format=form,
                activation_type=activations,
                weight_type=weights,
                per_channel=per_channel,
            )
    for path in sorted(FOLDER.glob("*.onnx")):
        whole = onnx.load(str(path))
        plain(whole)
        onnx.save(whole, str(path))
        print(path.name, path.stat().st_size, sorted({node.op_type for node in whole.graph.node}))


if __name__ == "__main__":
    main()
