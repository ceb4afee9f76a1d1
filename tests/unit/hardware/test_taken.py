"""One board takes one program at a time."""

import subprocess
import sys
import threading

from stages.backends.hardware.taken import taken

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
