"""What the report says of a network that was quantized: figures beside each other, and the picture of the ranges."""

from typing import Any
from xml.etree import ElementTree

from stages.report.quantization import line, quantization, section
from stages.report.ranges_svg import ranges_svg

SVG = "{http://www.w3.org/2000/svg}"


def layer(name: str, **more: Any) -> dict[str, Any]:
    made = {"index": 0, "op": "conv2d", "name": name, "dtype": "int8", "weights": "int8", "scale": 0.1, "low": -4.0}
    return {**made, "high": 4.0, "seen": [-1.0, 4.0], "snr": 30.0, "drop": 2.0, "clipped": 0.0, **more}


def found(**accuracy: float) -> dict[str, Any]:
    file = {"sha256": "ab", "bytes": 1000}
    shares = {"samples": 10, "agree": 0.9, **accuracy}
    made = {"float": file, "quantized": {**file, "bytes": 400}, "samples": 5, "evaluated": True, "accuracy": shares}
    return {**made, "loss": 1.0, "snr": 25.0, "layers": [layer("a|b")], "warnings": ["no"]}


def test_accuracies_of_all_three_stand_beside_each_other() -> None:
    verified = {"accuracy": {"images": 4, "ours": 0.75, "litert": 0.75, "agree": 1.0}}
    made = quantization(found(float=0.8, quantized=0.7), verified)
    assert made is not None and "warnings" not in made
    assert line(made) == (
        "accuracy of float 80.00 %, quantized 70.00 % (10 samples), on the target 75.00 % (4 samples); outputs 25.0 dB"
    )
    page = section(made)
    rows = [row for row in page if row.startswith(("| float", "| quantized"))]
    assert rows == [
        "| float | 10 | 80.00 % |  |",
        "| quantized, LiteRT | 10 | 70.00 % | 90.00 % |",
        "| quantized, firmware | 4 | 75.00 % |  |",
    ]
    assert "| 0 | a\\|b | conv2d | int8, weights int8 | 30.0 | 2.0 | 0 % | -1 to 4 | -4 to 4 |" in page


def test_without_labels_it_is_the_class_that_counts() -> None:
    made = quantization(found(), None)
    assert made is not None and made["target"] is None
    assert line(made) == "class of float and quantized agree in 90.00 % (10 samples); outputs 25.0 dB"
    assert line({**made, "evaluated": False}).count("calibration samples") == 1


def drawn(*layers: dict[str, Any]) -> ElementTree.Element:
    return ElementTree.fromstring(ranges_svg(layers))


def test_names_from_models_are_text_and_float_layers_have_no_ends() -> None:
    made = drawn(layer('<script>"&\x1b', low=None, high=None, scale=None, clipped=None, dtype="float32"))
    texts = [one.text or "" for one in made.iter(f"{SVG}text")]
    assert any(text.startswith('<script>"&') and "\x1b" not in text for text in texts)
    assert made.findall(f"{SVG}path") == [] and {"float32, 30.0 dB", "square-root scale"} <= {*texts}
    assert drawn().findall(f"{SVG}path") == []
