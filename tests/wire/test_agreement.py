"""Every message, in every version, against two other implementations of the protocol."""

from dataclasses import fields, is_dataclass, replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kelpie.errors import ErrorCode
from kelpie.wire.apis import NAMES, api
from kelpie.wire.compiler import decode, encode
from kelpie.wire.compiler.layout import layout
from kelpie.wire.schema import notes_of
from tests.wire.messages import messages
from tests.wire.oracles import REQUEST, RESPONSE, KafkaPython, Kio, differences

KAFKA_PYTHON = KafkaPython()
KIO = Kio()
ORACLES = (KAFKA_PYTHON, KIO)
QUICK = settings(
    database=None,
    suppress_health_check=list(HealthCheck),
)
API_VERSIONS_RESPONSE = (18, RESPONSE)
NO_ERROR = {"error_code": lambda _: 0}
"""kafka-python reads an ApiVersions answer with an error as version 0, as clients must (KIP-511)."""

BOTH_WAYS = [(key, kind) for key in NAMES for kind in (REQUEST, RESPONSE)]


def named(pair: tuple[int, str]) -> str:
    return f"{NAMES[pair[0]]}-{pair[1]}"


def ours(key: int, kind: str) -> type:
    return api(key).request if kind == REQUEST else api(key).response


def wire_form(cls, version):
    at = layout(cls, version)
    return at.flexible, at.fields, at.tagged


def spoken_by(key, kind):
    """The versions of ours that an oracle speaks, with those who do."""
    spoken = api(key).versions
    oracles = {
        v: [it for it in ORACLES if v in it.versions(key, kind)] for v in range(spoken.first, spoken.last + 1)
    }
    return {version: them for version, them in oracles.items() if them}


def fitted(value, version, rules):
    """The same message; numbers that an oracle would not take are put right by the rule for their name."""
    if isinstance(value, list):
        return [fitted(each, version, rules) for each in value]
    if not is_dataclass(value):
        return value
    changed = {}
    for field in fields(value):
        if version not in notes_of(field).versions:
            continue
        now = getattr(value, field.name)
        rule = next((rule for ending, rule in rules.items() if field.name.endswith(ending)), None)
        changed[field.name] = rule(now) if rule and isinstance(now, int) else fitted(now, version, rules)
    return replace(value, **changed)


KNOWN_CODES = {int(code) for code in ErrorCode if code <= 119}
OF_KIO = {
    "error_code": lambda code: code if code in KNOWN_CODES else code % 100,
    "_ms": lambda time: time % 2**31,
    "timestamp": lambda time: time % 2**40,
}
"""It knows no error code that is not Kafka's, and no odd times."""


def agrees(oracle, key, kind, version, message):
    body = encode(message, version)
    assert decode(ours(key, kind), version, body) == message
    theirs = oracle.decode(key, kind, version, body)
    assert differences(message, theirs, version) == []
    assert oracle.encode(key, kind, version, theirs) == body


@pytest.mark.parametrize("pair", BOTH_WAYS, ids=named)
def test_messages_agree_with_other_readings_of_the_schemas(pair):
    """kafka-python back to version 0, kio up to the newest: same bytes, same names.

    Each message goes to both, for drawing it takes most of the time.
    """
    speakers = spoken_by(*pair)

    @settings(QUICK, max_examples=70)
    @given(st.one_of(st.tuples(st.just(version), messages(ours(*pair), version)) for version in speakers))
    def check(versioned):
        version, message = versioned
        for oracle in speakers[version]:
            rules = OF_KIO if oracle is KIO else NO_ERROR if pair == API_VERSIONS_RESPONSE else None
            agrees(oracle, *pair, version, fitted(message, version, rules) if rules else message)

    check()


@pytest.mark.parametrize("key", NAMES, ids=NAMES.get)
def test_every_version_is_met_by_an_oracle(key):
    """A version that neither library speaks would be checked by nobody, unless it equals the next one."""
    spoken = api(key).versions
    for kind in (REQUEST, RESPONSE):
        met = {*KAFKA_PYTHON.versions(key, kind), *KIO.versions(key, kind)}
        for version in set(range(spoken.first, spoken.last + 1)) - met:
            assert wire_form(ours(key, kind), version) == wire_form(ours(key, kind), version + 1), version
