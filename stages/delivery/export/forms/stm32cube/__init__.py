"""STM32Cube: a folder of sources for projects of STM32CubeMX (CMake) and STM32CubeIDE (managed build)."""

from __future__ import annotations

from stages.delivery.export.form import Form, cortex_m_only

FORM = Form(
    __file__,
    "a folder for a project of STM32CubeMX (CMake) or STM32CubeIDE",
    {
        "CMakeLists.txt": "CMakeLists.txt.j2",
        # On the include path of the sources, and no file that STM32CubeIDE would compile.
        "src/{name}_test_data.h": "shared/test_data.h.j2",
    },
    why_not=cortex_m_only,
    several=True,
    note="Copy this folder into your project, as `{{ name }}`.\n\n"
    "- **CMake** (STM32CubeMX, STM32 extension of VS Code): append these lines to the project's `CMakeLists.txt`, "
    "which STM32CubeMX writes only once:\n\n"
    "```cmake\n"
    "add_subdirectory({{ name }})\n"
    "target_link_libraries(${CMAKE_PROJECT_NAME} {{ name }})\n"
    "```\n\n"
    "- **STM32CubeIDE**: open Properties > C/C++ General > Paths and Symbols. Add `{{ name }}` under Source Location "
    "and `{{ name }}/src` under Includes. In the properties of the folder, set C/C++ Build > Settings > Optimization "
    "to `-O2`.\n\n"
    "To run the test, include `{{ name }}_test_data.h` in `main.c` and call "
    "{% for network in networks %}`{{ network.name }}_test()`{{ ' and ' if not loop.last }}{% endfor %} "
    "in a USER CODE section.",
)
