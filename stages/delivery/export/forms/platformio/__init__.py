"""PlatformIO: a library with its manifest, and an example project."""

import json
from collections.abc import Mapping
from typing import Any

from stages.delivery.export.content import Content
from stages.delivery.export.form import Files, Form


def _manifest(content: Content) -> Mapping[str, Any]:
    return {
        "$schema": "https://raw.githubusercontent.com/platformio/platformio-core/develop/platformio/assets/schema/library.json",
        "name": content.name,
        "version": content.version,
        "description": f"The {content.what} as C, for {content.target.name}",
        "keywords": ["neural network", "machine learning"],
        "authors": [{"name": "Firmline"}],
        "license": "Apache-2.0",
        "headers": f"{content.name}.h",
        "frameworks": "*",
        "platforms": "*",
        "build": {"srcDir": "src", "includeDir": "src", "flags": ["-O2", "-ffp-contract=off"]},
        "examples": [
            {"name": "test", "base": "examples/test", "files": ["platformio.ini", "src/main.c", "src/test_data.h"]}
        ],
        "export": {"include": ["library.json", "README.md", "LICENSE", "src/*", "examples/*"]},
    }


def _with_manifest(files: Files, content: Content) -> Files:
    return files | {"library.json": (json.dumps(_manifest(content), indent=2) + "\n").encode()}


FORM = Form(
    __file__,
    "a PlatformIO library with an example project",
    {
        "examples/test/platformio.ini": "platformio.ini.j2",
        "examples/test/src/main.c": "shared/main.c.j2",
        "examples/test/src/test_data.h": "shared/test_data.h.j2",
    },
    contract_off=True,
    finish=_with_manifest,
    several=True,
    run="pio run -d examples/test",
)
