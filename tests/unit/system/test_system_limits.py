"""What a limit of the system is told as, and what is none."""

import errno

import pytest

from stages.support.system.system_limits import is_disk_full, system_limit


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (OSError(errno.EMFILE, "x"), ("too many files are open", "raise the limit with ulimit -n")),
        (OSError(errno.EFBIG, "x"),
         ("a file would be larger than this process may write", "raise the limit with ulimit -f")),
        (MemoryError(), ("out of memory", "")),
        (RuntimeError("can't start new thread"),
         ("there are too many processes or threads", "raise the limit with ulimit -u")),
        (OSError("libtvm.so: failed to map segment from shared object"),
         ("no memory for a library", "raise the limit with ulimit -v")),
        (OSError(errno.EACCES, "x"), None),
        (OSError("x"), None),
        (RuntimeError("x"), None),
    ],
    ids=repr,
)  # fmt: skip
def test_limits(error: BaseException, told: tuple[str, str] | None) -> None:
    assert system_limit(error) == told


def test_disk_full() -> None:
    assert is_disk_full(OSError(errno.ENOSPC, "full"))
    assert is_disk_full(OSError(errno.EDQUOT, "quota"))
    assert not is_disk_full(OSError(errno.EACCES, "no"))
