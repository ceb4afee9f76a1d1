"""MLPerf Tiny: the benchmark's harness functions for a network, for submissions."""

import re
from collections.abc import Mapping
from math import prod
from typing import Any

from stages.delivery.export.content import Content
from stages.delivery.export.form import Form

# Models of the benchmark, by the elements of the input and by words in the recipe's name. IC01 and IC02 have the same
# input: IC01 has 12.5 million multiply-accumulates, IC02 76 million.
_MODELS = {490: "KWS01", 96 * 96 * 3: "VWW01", 32 * 32 * 3: "IC01", 640: "AD01", 30 * 40: "SWW01"}
_WORDS = {"kws": "KWS01", "vww": "VWW01", "ic": "IC01", "ad": "AD01", "sww": "SWW01"}
_LARGE = 25_000_000
_TYPES = ("int8", "uint8", "float32")

# Inputs of the streaming wake word, by dtype and elements. All but the whole window need a network with state.
_STREAMED = {("int8", 30 * 40): "window", ("int8", 40): "frame", ("int16", 512): "samples"}


def _why_not(content: Content) -> str:
    (network,) = content.networks
    model = network.model
    counts = [len(model["inputs"]), len(model["outputs"])]
    if counts != [1, 1]:
        return f"the harness supports one input and one output, the network has {counts[0]} and {counts[1]}"
    if "output_rows" in model:
        return "the harness reads a whole output, but the network passes it on by rows (`emit: {output: rows}`)"
    if _version(content) == "SWW01":
        return _why_not_streamed(content)
    for kind in ("inputs", "outputs"):
        if model[kind][0]["dtype"] not in _TYPES:
            return f"the harness supports {', '.join(_TYPES)}, the {kind[:-1]} is {model[kind][0]['dtype']}"
    return "the harness does not reset state between inferences" if network.is_stateful else ""


def _why_not_streamed(content: Content) -> str:
    model = content.networks[0].model
    if not _streamed(content):
        port = model["inputs"][0]
        return (
            "the harness of sww passes 30 frames of 40 int8 features or, to a network with state, one frame or 512 "
            f"int16 samples; the input is {port['dtype']} {port['shape']}"
        )
    dtype = model["outputs"][0]["dtype"]
    return "" if dtype == "int8" else f"the harness of sww compares int8 scores, but the output is {dtype}"


def _version(content: Content) -> str:
    """Return the benchmark's name of the model, or ''."""
    model = content.networks[0].model
    named = [version for word, version in _WORDS.items() if word in re.split("[^a-z]+", content.name)]
    version = named[0] if named else _MODELS.get(prod(model["inputs"][0]["shape"]), "")
    large = sum(layer["macs"] for layer in model["layers"]) > _LARGE
    return "IC02" if version == "IC01" and large else version


def _streamed(content: Content) -> str:
    """Return the kind of input of the streaming wake word's network.

    `window`, `frame` or `samples`; '' for another input.
    """
    (network,) = content.networks
    port = network.model["inputs"][0]
    kind = _STREAMED.get((port["dtype"], prod(port["shape"])), "")
    return kind if network.is_stateful or kind == "window" else ""


def _facts(content: Content) -> Mapping[str, Any]:
    version = _version(content)
    return {
        "model_version": version,
        "unsigned": version in ("VWW01", "IC01", "IC02"),
        "features": version == "AD01",
        "streamed": _streamed(content) if version == "SWW01" else "",
    }


FORM = Form(
    __file__,
    "the th_ functions of MLPerf Tiny's harness around the network",
    {
        "api/submitter_implemented.cpp": "submitter_implemented.cpp.j2",
        "api/port.h": "port.h.j2",
        "api/sww_ref_util_submitter.h": "sww_ref_util_submitter.h.j2",
        "api/sww_ref_util_submitter.c": "sww_ref_util_submitter.c.j2",
        "api/log_mel.c": "log_mel.c.j2",
        "api/sww_main.c": "sww_main.c.j2",
        "example/main.c": "shared/main.c.j2",
        "example/test_data.h": "shared/test_data.h.j2",
    },
    why_not=_why_not,
    facts=_facts,
    note="{% if streamed %}"
    "Copy the files of api/ next to sww_ref_util.c and fixed_data.c of the benchmark's reference submission "
    "streaming_wakeword/sww_ref_l4r5zi. They replace its sww_ref_util_submitter and main. sww_ref_util_submitter.h "
    "lists the functions that the board must provide."
    "{% else %}"
    "Copy the files of api/ next to the benchmark's benchmark/api/internally_implemented.cpp. api/port.h lists "
    "the functions that the board must provide."
    "{% endif %}",
)
