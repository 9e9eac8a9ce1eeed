"""Plain data that is no row is known before anybody decodes it."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kelpie.observations.checking import fits
from kelpie.observations.encoding import KINDS, decode, encode
from tests.observations.test_encoding import TEN_AT_ONCE, rows

_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.text(max_size=3) | st.just(0.5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=4,
)


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
@TEN_AT_ONCE
def test_what_fits_can_be_decoded_and_every_row_of_this_century_fits(kind: str, data: st.DataObject) -> None:
    """Whatever stands where a field should be: it is refused, or can be decoded."""
    for row in data.draw(rows(KINDS[kind])):
        plain: dict[str, Any] = json.loads(json.dumps(encode(row)))
        for name in plain.keys() & {"at", "expires", "last_written"}:
            plain[name] = data.draw(st.none() | st.integers(0, 4_000_000_000_000))
        for name in plain.keys() & {"not_before", "not_after"}:
            plain[name] = data.draw(st.integers(0, 4_000_000_000_000))
        assert fits(kind, plain)
        if plain:
            plain[data.draw(st.sampled_from(sorted(plain)))] = data.draw(_JSON)
            if fits(kind, plain):
                assert decode(kind, plain) is not None


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        ("nothing", {}),
        ("broker", None),
        ("broker", []),
        ("broker", {}),
        ("broker", {"node_id": "1"}),
        ("broker", {"node_id": True}),
        ("broker", {"node_id": 2**63}),
        ("broker", {"node_id": 1, "at": -1}),
        ("broker", {"node_id": 1, "at": 10**15}),
        ("ends", {"topic": "t", "partition": 0, "latest": "7"}),
        ("partition", {"topic": "t", "partition": 0, "leader": 1, "replicas": [None], "in_sync": []}),
        ("state", {"group": "g", "state": "Stable", "members": [{"client_id": "c"}]}),
        ("state", {"group": "g", "state": "Stable", "error": 123_456}),
    ],
)
def test_what_is_no_row_does_not_fit(kind: str, data: Any) -> None:
    """A file may come from anywhere."""
    assert not fits(kind, data)
