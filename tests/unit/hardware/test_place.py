"""A board: where it is, how it is known, what the firmware's side and ours know alike, and one program at a time."""

import subprocess
import sys
import threading

import pytest
from pydantic import ValidationError

from stages.backends.hardware.place import address, check_place
from stages.backends.hardware.taken import taken
from stages.backends.targets.chip import ChipNumber


def test_places() -> None:
    assert address("gdb://localhost:3333") == "localhost:3333" and address("gdb://[::1]:1") == "[::1]:1"
    wrong = "localhost:3333 gdb://localhost gdb://:1 gdb://x:0 gdb://x:70000"
    for place in (*wrong.split(), "gdb://a b:1", "gdb://x:1\n"):
        with pytest.raises(ValueError, match="gdb://HOST:PORT"):
            check_place(place)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"name": "x", "value": 1}, "needs an address or a register"),
        ({"name": "x", "address": 4, "register": "misa", "value": 1}, "needs an address or a register"),
        ({"name": "x", "address": 4, "mask": 0xF, "value": 0x10}, "has bits outside of the mask 0xf"),
    ],
)
def test_numbers_that_mean_nothing(given: dict[str, object], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        ChipNumber.model_validate(given)


HOLDER = """\
import sys
from stages.backends.hardware.taken import taken
with taken(sys.argv[1]):
    print("has it", flush=True)
    sys.stdin.read()
"""


def test_a_place_is_had_by_one_run_whatever_process_it_is_in() -> None:
    place = "gdb://localhost:61234"
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, place], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert holder.stdin is not None and holder.stdout is not None
    assert holder.stdout.readline() == "has it\n"
    waited, had = threading.Event(), threading.Event()

    def second() -> None:
        # The same board by its other name.
        with taken("gdb://127.0.0.1:61234", waited.set):
            had.set()

    thread = threading.Thread(target=second)
    thread.start()
    assert waited.wait(30) and not had.is_set()
    with taken("gdb://localhost:61235"):  # another board
        pass
    assert not had.is_set()
    holder.communicate("")
    thread.join(30)
    assert had.is_set()
