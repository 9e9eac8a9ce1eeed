"""JSON of all commands is written by a function of our own."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kelpie.cli.json_output import indented
from kelpie.model.repeated import Repeated

_PLAIN = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
_KEYS = st.text() | st.integers() | st.booleans() | st.none()
_DOCUMENTS = st.recursive(
    _PLAIN,
    lambda inner: (
        st.lists(inner)
        | st.tuples(inner, inner)
        | st.dictionaries(_KEYS, inner)
        | st.dictionaries(st.text(), inner).map(Repeated)
    ),
)


@given(_DOCUMENTS)
def test_documents_are_written_as_the_standard_library_does(document: Any) -> None:
    """Programs compare outputs of two releases byte by byte."""
    assert indented(document) == json.dumps(document, indent=2)


def test_a_part_that_is_repeated_is_indented_as_its_place_wants() -> None:
    """The text that was written before is of a part in another depth, or of another part."""
    part, other = Repeated(text="broker 3 is dead", at=None), Repeated()
    document = {"a": part, "b": [part, [part, other]], "c": {"d": part}, "e": other}
    assert indented(document) == json.dumps(document, indent=2)
