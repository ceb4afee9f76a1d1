"""STM32Cube: a folder of sources for STM32CubeMX (CMake) and STM32CubeIDE projects."""

from stages.delivery.export.form import Form, cortex_m_only

FORM = Form(
    __file__,
    "a folder for a project of STM32CubeMX (CMake) or STM32CubeIDE",
    {
        "README.md": "README.md.j2",
        "CMakeLists.txt": "CMakeLists.txt.j2",
        # On the include path of the sources, and no file that STM32CubeIDE would compile.
        "src/{name}_test_data.h": "shared/test_data.h.j2",
    },
    why_not=cortex_m_only,
    several=True,
    note="Copy this folder into your project, as `{{ name }}`, and follow the section *In your project* of README.md.",
)
