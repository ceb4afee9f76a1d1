"""Zephyr: a module with west manifest and Kconfig symbol, and a sample as a Twister test."""

from stages.delivery.export.form import Form

#: Release of Zephyr in west.yml: a tag, so that the workspace is the same each time.
_ZEPHYR = "v4.3.0"

FORM = Form(
    __file__,
    "a Zephyr module with a west manifest, Kconfig and a sample",
    {
        "zephyr/module.yml": "module.yml.j2",
        "zephyr/CMakeLists.txt": "CMakeLists.txt.j2",
        "zephyr/Kconfig": "Kconfig.j2",
        "west.yml": "west.yml.j2",
        "samples/{name}/CMakeLists.txt": "sample_CMakeLists.txt.j2",
        "samples/{name}/prj.conf": "prj.conf.j2",
        "samples/{name}/sample.yaml": "sample.yaml.j2",
        "samples/{name}/README.rst": "README.rst.j2",
        "samples/{name}/src/main.c": "shared/main.c.j2",
        "samples/{name}/src/test_data.h": "shared/test_data.h.j2",
    },
    weights="incbin",
    gives_flags=True,
    contract_off=True,
    several=True,
    facts=lambda content: {"zephyr": _ZEPHYR},
    run="west build -b BOARD samples/{{ name }} -- -DEXTRA_ZEPHYR_MODULES=$PWD",
    note="BOARD is the name of your board, such as nucleo_f446re; see `west boards`.",
)
