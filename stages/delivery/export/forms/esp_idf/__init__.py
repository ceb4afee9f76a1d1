"""ESP-IDF: a component with its manifest and Kconfig, and an example project."""

from collections.abc import Mapping
from typing import Any

from stages.delivery.export.content import Content
from stages.delivery.export.form import Form


def _why_not(content: Content) -> str:
    target, core = content.target, content.target.core
    if content.is_plain or (target.isa in ("rv32imc", "rv32imac") and not target.extensions):
        return ""
    return f"{core} is not a core of an ESP32\nuse target=esp32-c3 for RISC-V, or target=host (plain C) for Xtensa"


def _facts(content: Content) -> Mapping[str, Any]:
    """Return the chips that can run the code, by its multiplications and atomics."""
    if content.is_plain:
        return {"targets": []}
    atomic = ["esp32c6", "esp32h2"]
    return {"targets": atomic if content.target.isa.startswith("rv32imac") else ["esp32c3", *atomic]}


FORM = Form(
    __file__,
    "an ESP-IDF component with an example project",
    {
        "CMakeLists.txt": "CMakeLists.txt.j2",
        "idf_component.yml": "idf_component.yml.j2",
        "Kconfig": "Kconfig.j2",
        "examples/test/CMakeLists.txt": "example_CMakeLists.txt.j2",
        "examples/test/main/CMakeLists.txt": "main_CMakeLists.txt.j2",
        "examples/test/main/idf_component.yml": "main_idf_component.yml.j2",
        "examples/test/main/app_main.c": "app_main.c.j2",
        "examples/test/main/test_data.h": "shared/test_data.h.j2",
    },
    gives_flags=True,
    contract_off=True,
    why_not=_why_not,
    facts=_facts,
    several=True,
    run="idf.py -C examples/test set-target esp32c3 flash monitor",
)
