"""JSON of all commands is written by a function of our own."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kelpie.cli.json_output import indented

_PLAIN = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
_KEYS = st.text() | st.integers() | st.booleans() | st.none()
_DOCUMENTS = st.recursive(
    _PLAIN, lambda inner: st.lists(inner) | st.tuples(inner, inner) | st.dictionaries(_KEYS, inner)
)


@given(_DOCUMENTS)
def test_documents_are_written_as_the_standard_library_does(document: Any) -> None:
    """Programs compare outputs of two releases byte by byte."""
    assert indented(document) == json.dumps(document, indent=2)
