"""MLPerf Tiny: the benchmark's harness functions for a network, for submissions."""

from __future__ import annotations

import re
from collections.abc import Mapping
from math import prod
from typing import Any

from stages.delivery.export.content import Content
from stages.delivery.export.form import Form

# Models of version 1 of the benchmark, by the elements of the input and by words in the recipe's name.
_MODELS = {490: "KWS01", 96 * 96 * 3: "VWW01", 32 * 32 * 3: "IC01", 640: "AD01"}
_WORDS = {"kws": "KWS01", "vww": "VWW01", "ic": "IC01", "ad": "AD01"}
_TYPES = ("int8", "uint8", "float32")


def _why_not(content: Content) -> str:
    (network,) = content.networks
    model = network.model
    counts = [len(model["inputs"]), len(model["outputs"])]
    if counts != [1, 1]:
        return f"the harness supports one input and one output, the network has {counts[0]} and {counts[1]}"
    for kind in ("inputs", "outputs"):
        if model[kind][0]["dtype"] not in _TYPES:
            return f"the harness supports {', '.join(_TYPES)}, the {kind[:-1]} is {model[kind][0]['dtype']}"
    return "the harness does not reset state between inferences" if network.is_stateful else ""


def _facts(content: Content) -> Mapping[str, Any]:
    elements = prod(content.networks[0].model["inputs"][0]["shape"])
    named = [model for word, model in _WORDS.items() if word in re.split("[^a-z]+", content.name)]
    version = named[0] if named else _MODELS.get(elements, "")
    return {"model_version": version, "unsigned": version in ("VWW01", "IC01"), "features": version == "AD01"}


FORM = Form(
    __file__,
    "the th_ functions of MLPerf Tiny's harness around the network",
    {
        "api/submitter_implemented.cpp": "submitter_implemented.cpp.j2",
        "api/port.h": "port.h.j2",
        "example/main.c": "shared/main.c.j2",
        "example/test_data.h": "shared/test_data.h.j2",
    },
    why_not=_why_not,
    facts=_facts,
    note="Copy the files of api/ next to the benchmark's benchmark/api/internally_implemented.cpp. api/port.h lists "
    "the functions that the board must provide.",
)
