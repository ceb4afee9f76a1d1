"""Entries are Bazel's ActionResult, as protobuf's own library writes it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.remote.entry import MOST_FILES, Blob, read_entry, write_entry

FILES = {
    "manifest.json": Blob("a" * 64, 1 << 33),
    "log.txt": Blob("e" * 64, 0),
    "files/firmware.elf": Blob("0123456789abcdef" * 4, 300, executable=True),
}


# FILES as protobuf's own library writes an ActionResult of remote_execution.proto.
WRITTEN = (
    b"\x12]\n\x12files/firmware.elf\x12E\n@" + b"0123456789abcdef" * 4 + b"\x10\xac\x02 \x01"
    b"\x12M\n\x07log.txt\x12B\n@" + b"e" * 64 + b"\x12Y\n\rmanifest.json\x12H\n@" + b"a" * 64 + b"\x10\x80\x80\x80\x80 "
)


def test_entries_are_messages_of_bazel() -> None:
    assert write_entry(FILES) == WRITTEN and read_entry(WRITTEN) == FILES


def test_what_a_server_adds_is_passed_over() -> None:
    """bazel-remote notes who sent an entry: an exit_code of 3, and the worker 10.0.0.7 in execution_metadata."""
    assert read_entry(WRITTEN + b" \x03J\n\n\x0810.0.0.7") == FILES


@given(st.binary(max_size=60))
def test_anything_is_read_or_refused(data: bytes) -> None:
    try:
        read_entry(data)
    except ValueError:
        return


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"\x08\x00" * 5_000_000, "more than 200,000 fields"),
        (b"\x12\x00" * 5_000_000, "invalid digest"),
        (write_entry({"a": Blob("a" * 64, 1, executable=True)})[:2] + b"\x08\x00" * 5_000_000, "truncated|fields"),
        (write_entry({"a": Blob("a" * 64, 1 << 50)}), "invalid size"),
        # A negative number is one of 64 bits.
        (write_entry({"a": Blob("a" * 64, (1 << 64) - 1)}), "invalid size"),
        (write_entry({str(n): Blob("a" * 64, 1) for n in range(MOST_FILES + 1)}), "more than 20,000 files"),
        (b"\x12" + b"\xff" * 9 + b"\x01", "truncated"),
    ],
    ids=["fields", "files without a digest", "fields of a file", "2^50 bytes", "-1 bytes", "files", "a long field"],
)
def test_more_than_an_artifact_has_is_refused(data: bytes, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read_entry(data)
