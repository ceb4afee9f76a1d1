"""CMake: a static library, an example that is a test of CTest, and for another core a toolchain file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stages.delivery.export.content import Content
from stages.delivery.export.form import Files, Form
from stages.delivery.export.simulated import machine_of

_FOLDER = "simulator"


def _facts(content: Content) -> Mapping[str, Any]:
    target = content.target
    machine = machine_of(target, content.model)
    return {
        "cross": target.family != "host",
        "system": "Linux" if target.memory is None else "Generic",
        "processor": target.isa.split("+")[0],
        "prefix": target.compiler.command.removesuffix("gcc"),
        "core_flags": content.flags,
        "machine": machine,
        "simulator": _FOLDER,
        "assembly": any(one["path"].endswith(".S") for one in content.compiled),
        "bins": sorted(path for path in content.sources if path.endswith(".bin")),
    }


def _with_machine(files: Files, content: Content) -> Files:
    """The start-up code and the linker script of the machine that the target's simulator has."""
    machine = machine_of(content.target, content.model)
    return files | {f"{_FOLDER}/{name}": data for name, data in (machine.files if machine else {}).items()}


FORM = Form(
    __file__,
    "a CMake project: a library, a test, and a toolchain file where the target is another core",
    {
        "CMakeLists.txt": "CMakeLists.txt.j2",
        "cmake/toolchain.cmake": "toolchain.cmake.j2",
        "example/main.c": "shared/main.c.j2",
        "example/test_data.h": "shared/test_data.h.j2",
    },
    weights="incbin",
    gives_flags=True,
    contract_off=True,
    places_memory=True,
    facts=_facts,
    finish=_with_machine,
    run="cmake -B build{{ ' -DCMAKE_TOOLCHAIN_FILE=cmake/toolchain.cmake' if cross }} && cmake --build build"
    "{% if not cross or machine.command and not machine.plugin %} && ctest --test-dir build{% endif %}",
    note="{% if cross and machine.plugin %}"
    "The test runs in Spike with Firmline's plug-in for the P extension: add -D{{ machine.plugin }}=PATH to the first "
    "command, with the path that `python -m stages.backends.riscv.spike.build` prints in Firmline's folder, and end "
    "with "
    "`ctest --test-dir build`. Without it the example is built and there is no test."
    "{% elif cross and not machine.command %}"
    "The example is built, and there is no test: the simulator of {{ target }} has devices or plug-ins that are not in "
    "an export. Where you have one that runs it, name it with -DCMAKE_CROSSCOMPILING_EMULATOR=COMMAND."
    "{% endif %}",
)
