"""Mutated frames against the decoders: nothing but the typed errors comes out, and memory stays bounded.

`make test` sends some 20,000 frames, `make fuzz` a million and more (KELPIE_FUZZ_FRAMES).
"""

from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from kelpie.wire.apis import NAMES, api
from kelpie.wire.compiler import decode_prefix
from kelpie.wire.compiler.explain import Explainer
from kelpie.wire.compiler.layout import layout
from kelpie.wire.framing import (
    RequestHeader,
    UnsupportedVersion,
    decode_request,
    decode_response,
    encode_request,
    encode_response,
)
from kelpie.wire.malformed import Malformed
from tests.fuzzing.mutation import mutated, peak_mib, runs
from tests.wire.messages import messages, versions_of
from tests.wire.oracles import REQUEST, RESPONSE

FRAMES = runs("KELPIE_FUZZ_FRAMES", 20_000)
MUTATIONS = 40
PAIRS = [(key, kind) for key in NAMES for kind in (REQUEST, RESPONSE)]
EXAMPLES = max(2, -(-FRAMES // (MUTATIONS * len(PAIRS))))
MEMORY_MIB = 256


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: f"{NAMES[pair[0]]}-{pair[1]}")
def test_mutated_frames_raise_only_typed_errors(pair: tuple[int, str]) -> None:
    """What a peer sends is data, never a way to end the process."""
    key, kind = pair
    spoken = api(key)
    cls = spoken.request if kind == REQUEST else spoken.response
    before = peak_mib()

    @seed(key)
    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.generate],
    )
    @given(st.data(), st.integers(0, 2**32))
    def run(data: st.DataObject, number: int) -> None:
        version = data.draw(st.sampled_from(versions_of(key)))
        message = data.draw(messages(cls, version))
        if kind == REQUEST:
            frame = encode_request(RequestHeader(key, version, 1, "fuzz"), message)[4:]
        else:
            frame = encode_response(key, version, 1, message)[4:]
        random = Random(number)
        for _ in range(MUTATIONS):
            broken = mutated(frame, random)
            try:
                if kind == REQUEST:
                    decode_request(broken)
                else:
                    decode_response(key, version, broken)
            except (Malformed, UnsupportedVersion):
                pass
            agree(cls, version, broken)

    run()
    assert peak_mib() - before < MEMORY_MIB


def agree(cls: type[Any], version: int, raw: bytes) -> None:
    """The fast decoder and the slow one say the same of any bytes."""
    slow = Explainer(raw, 0, layout(cls, version))
    try:
        explained: object = (slow.message(), slow.position)
    except Malformed as error:
        explained = str(error)
    try:
        decoded: object = decode_prefix(cls, version, raw)
    except Malformed as error:
        decoded = str(error)
    assert repr(decoded) == repr(explained)  # by repr: a mutated double may be NaN


def test_a_test_run_sends_enough_frames() -> None:
    """The count that the documentation names."""
    assert EXAMPLES * MUTATIONS * len(PAIRS) >= FRAMES
