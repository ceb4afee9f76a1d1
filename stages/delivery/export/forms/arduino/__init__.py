"""Arduino: a library with recursive layout (src/), and a sketch.

The sketch prints the test's result to the serial port.
"""

from stages.delivery.export.form import Form

FORM = Form(
    __file__,
    "an Arduino library with an example sketch",
    {
        "library.properties": "library.properties.j2",
        "keywords.txt": "keywords.txt.j2",
        "examples/{name}_test/{name}_test.ino": "sketch.ino.j2",
        "examples/{name}_test/test_data.h": "shared/test_data.h.j2",
    },
    several=True,
    run="arduino-cli compile --fqbn BOARD --library . examples/{{ name }}_test",
    note="BOARD is the name of your board, such as arduino:mbed_nano:nano33ble; see `arduino-cli board listall`.",
)
