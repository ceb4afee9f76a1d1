"""Entries are Bazel's ActionResult, as protobuf's own library reads and writes it."""

from __future__ import annotations

from typing import Any

import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from hypothesis import given
from hypothesis import strategies as st

from pipeline.remote.entry import MOST_FILES, Blob, read_entry, write_entry

FILES = {
    "manifest.json": Blob("a" * 64, 1 << 33),
    "log.txt": Blob("e" * 64, 0),
    "files/firmware.elf": Blob("0123456789abcdef" * 4, 300, executable=True),
}


def messages() -> Any:
    """The three messages of remote_execution.proto that matter, with a field that this project does not know."""
    field = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="re.proto", package="re", syntax="proto3")

    def message(name: str, *fields: tuple[str, int, int, str, bool]) -> None:
        made = file.message_type.add(name=name)
        for called, number, kind, of, many in fields:
            label = field.LABEL_REPEATED if many else field.LABEL_OPTIONAL
            made.field.add(name=called, number=number, type=kind, type_name=of or None, label=label)

    message("Digest", ("hash", 1, field.TYPE_STRING, "", False), ("size_bytes", 2, field.TYPE_INT64, "", False))
    message(
        "OutputFile",
        ("path", 1, field.TYPE_STRING, "", False),
        ("digest", 2, field.TYPE_MESSAGE, ".re.Digest", False),
        ("is_executable", 4, field.TYPE_BOOL, "", False),
    )
    message("Metadata", ("worker", 1, field.TYPE_STRING, "", False))
    message(
        "ActionResult",
        ("output_files", 2, field.TYPE_MESSAGE, ".re.OutputFile", True),
        ("exit_code", 4, field.TYPE_INT32, "", False),
        ("execution_metadata", 9, field.TYPE_MESSAGE, ".re.Metadata", False),
    )
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("re.ActionResult"))


def test_protobuf_reads_what_is_written() -> None:
    found = messages().FromString(write_entry(FILES))
    assert {
        one.path: Blob(one.digest.hash, one.digest.size_bytes, one.is_executable) for one in found.output_files
    } == FILES
    assert found.exit_code == 0


def test_what_a_server_adds_is_passed_over() -> None:
    """bazel-remote notes who sent an entry, and writes the message anew."""
    found = messages().FromString(write_entry(FILES))
    found.execution_metadata.worker = "10.0.0.7"
    found.exit_code = 3
    assert read_entry(found.SerializeToString()) == FILES


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
        (b"\x12\x00" * 5_000_000, "no digest"),
        (write_entry({"a": Blob("a" * 64, 1, executable=True)})[:2] + b"\x08\x00" * 5_000_000, "middle|fields"),
        (write_entry({"a": Blob("a" * 64, 1 << 50)}), "no size"),
        # A negative number is one of 64 bits.
        (write_entry({"a": Blob("a" * 64, (1 << 64) - 1)}), "no size"),
        (write_entry({str(n): Blob("a" * 64, 1) for n in range(MOST_FILES + 1)}), "more than 20,000 files"),
        (b"\x12" + b"\xff" * 9 + b"\x01", "middle"),
    ],
    ids=["fields", "files without a digest", "fields of a file", "2^50 bytes", "-1 bytes", "files", "a long field"],
)
def test_more_than_an_artifact_has_is_refused(data: bytes, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read_entry(data)
