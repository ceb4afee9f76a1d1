"""JSON that is none, or no reader takes."""

import pytest

from stages.support.system.json_text import parsed_json


def test_whatever_cannot_be_read_is_one_error() -> None:
    assert parsed_json(b'{"a": [1]}') == {"a": [1]}
    for text in ("", "{", "[" * 100_000):
        with pytest.raises(ValueError, match=r"."):
            parsed_json(text)
