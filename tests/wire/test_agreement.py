"""Every message, in every version, against two other implementations of the protocol."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kelpie.errors import ErrorCode
from kelpie.wire.apis import NAMES, api
from kelpie.wire.compiler import decode, encode
from kelpie.wire.compiler.layout import layout
from tests.wire.messages import messages
from tests.wire.oracles import REQUEST, RESPONSE, KafkaPython, Kio, differences

KAFKA_PYTHON = KafkaPython()
KIO = Kio()
QUICK = settings(
    database=None,
    suppress_health_check=list(HealthCheck),
)
API_VERSIONS_RESPONSE = (18, RESPONSE)
"""kafka-python reads an ApiVersions answer with an error as version 0, as clients must (KIP-511)."""

BOTH_WAYS = [(key, kind) for key in NAMES for kind in (REQUEST, RESPONSE)]


def named(pair: tuple[int, str]) -> str:
    return f"{NAMES[pair[0]]}-{pair[1]}"


def ours(key: int, kind: str) -> type:
    return api(key).request if kind == REQUEST else api(key).response


def wire_form(cls, version):
    at = layout(cls, version)
    return at.flexible, at.fields, at.tagged


def shared(oracle, key, kind, **narrow):
    """Messages in the versions that both sides speak."""
    spoken = api(key).versions
    versions = [v for v in range(spoken.first, spoken.last + 1) if v in oracle.versions(key, kind)]
    if not versions:
        pytest.skip(f"{oracle.name} does not speak it")
    return st.one_of(st.tuples(st.just(v), messages(ours(key, kind), v, **narrow)) for v in versions)


def agree(oracle, key, kind, strategy, examples):
    @settings(QUICK, max_examples=examples)
    @given(strategy)
    def check(versioned):
        version, message = versioned
        body = encode(message, version)
        assert decode(ours(key, kind), version, body) == message
        theirs = oracle.decode(key, kind, version, body)
        assert differences(message, theirs, version) == []
        assert oracle.encode(key, kind, version, theirs) == body

    check()


@pytest.mark.parametrize("pair", BOTH_WAYS, ids=named)
def test_messages_agree_with_kafka_python(pair):
    """An independent reading of the schemas, back to version 0: same bytes, same names."""
    narrow = {"error_code": st.just(0)} if pair == API_VERSIONS_RESPONSE else {}
    agree(KAFKA_PYTHON, *pair, shared(KAFKA_PYTHON, *pair, **narrow), 60)


@pytest.mark.parametrize("pair", BOTH_WAYS, ids=named)
def test_messages_agree_with_kio(pair):
    """A second reading, up to the newest versions; kio knows no unknown error code and no odd times."""
    known = shared(
        KIO,
        *pair,
        error_code=st.sampled_from([int(code) for code in ErrorCode if code <= 119]),
        _ms=st.integers(0, 2**31 - 1),
        timestamp=st.integers(0, 2**40),
    )
    agree(KIO, *pair, known, 60)


@pytest.mark.parametrize("key", NAMES, ids=NAMES.get)
def test_every_version_is_met_by_an_oracle(key):
    """A version that neither library speaks would be checked by nobody, unless it equals the next one."""
    spoken = api(key).versions
    for kind in (REQUEST, RESPONSE):
        met = {*KAFKA_PYTHON.versions(key, kind), *KIO.versions(key, kind)}
        for version in set(range(spoken.first, spoken.last + 1)) - met:
            assert wire_form(ours(key, kind), version) == wire_form(ours(key, kind), version + 1), version
