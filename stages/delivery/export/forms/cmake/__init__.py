"""CMake: a static library, an example as CTest test, a toolchain file for other cores."""

from collections.abc import Mapping
from typing import Any

from stages.delivery.export.content import Content
from stages.delivery.export.form import Files, Form
from stages.delivery.export.simulated import machine_of

_FOLDER = "simulator"


def _facts(content: Content) -> Mapping[str, Any]:
    target = content.target
    machine = machine_of(target, content.blocks)
    return {
        "cross": not target.is_native,
        "system": "Linux" if target.memory is None else "Generic",
        "processor": target.isa.split("+")[0],
        "prefix": target.compiler.command.removesuffix("gcc"),
        "core_flags": content.flags,
        "link_flags": content.link_flags,
        "machine": machine,
        "draft": target.extensions.get("rvp", ""),
        "simulator": _FOLDER,
        "assembly": any(file["path"].endswith(".S") for file in content.compiled),
    }


def _with_machine(files: Files, content: Content) -> Files:
    """Add the start-up code and the linker script of the simulated machine."""
    machine = machine_of(content.target, content.blocks)
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
    several=True,
    run="cmake -B build{{ ' -DCMAKE_TOOLCHAIN_FILE=cmake/toolchain.cmake' if cross }} && cmake --build build"
    "{% if not cross or machine.command and not machine.plugin %} && ctest --test-dir build{% endif %}",
    note="{% if cross and machine.plugin %}"
    "The test runs in Spike with Firmline's plug-in for the P extension: add -D{{ machine.plugin }}=PATH to the first "
    "command, with the path that `python -m stages.backends.riscv.spike.build {{ draft }}` prints in Firmline's "
    "folder. Then run `ctest --test-dir build`. Without the plug-in, the example is built but not run."
    "{% elif cross and not machine.command %}"
    "The example is built but not run: the simulator of {{ target }} needs devices or plug-ins that an export does not "
    "contain. To run it in another simulator, add -DCMAKE_CROSSCOMPILING_EMULATOR=COMMAND."
    "{% endif %}",
)
