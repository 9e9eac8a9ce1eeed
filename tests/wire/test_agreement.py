"""Every message, in every version, against two other implementations of the protocol."""

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from kelpie.errors import ErrorCode
from kelpie.wire.apis import NAMES, api
from kelpie.wire.compiler import decode, encode
from kelpie.wire.compiler.layout import FieldAt, layout
from kelpie.wire.schema import notes_of
from tests.wire.messages import several_messages, versions_of
from tests.wire.oracles import REQUEST, RESPONSE, KafkaPython, Kio, differences

KAFKA_PYTHON = KafkaPython()
KIO = Kio()
ORACLES = (KAFKA_PYTHON, KIO)
QUICK = settings(
    database=None,
    suppress_health_check=list(HealthCheck),
)
API_VERSIONS_RESPONSE = (18, RESPONSE)
Rules = Mapping[str, Callable[[int], int]]
"""By the end of a field's name: what becomes of its number."""

NO_ERROR: Rules = {"error_code": lambda _: 0}
"""kafka-python reads an ApiVersions answer with an error as version 0, as clients must (KIP-511)."""

BOTH_WAYS = [(key, kind) for key in NAMES for kind in (REQUEST, RESPONSE)]


def named(pair: tuple[int, str]) -> str:
    return f"{NAMES[pair[0]]}-{pair[1]}"


def ours(key: int, kind: str) -> type:
    return api(key).request if kind == REQUEST else api(key).response


def wire_form(cls: type[Any], version: int) -> tuple[bool, tuple[FieldAt, ...], tuple[FieldAt, ...]]:
    at = layout(cls, version)
    return at.flexible, at.fields, at.tagged


def oracles_by_version(key: int, kind: str) -> dict[int, list[KafkaPython | Kio]]:
    """Our versions of the message, each with the oracles that know it. A version without one is left out."""
    oracles = {
        version: [oracle for oracle in ORACLES if version in oracle.versions(key, kind)]
        for version in versions_of(key)
    }
    return {version: speakers for version, speakers in oracles.items() if speakers}


def fitted(value: Any, version: int, rules: Rules) -> Any:
    """The same message; numbers that an oracle would not take are put right by the rule for their name."""
    if isinstance(value, list):
        return [fitted(each, version, rules) for each in value]
    if not is_dataclass(value) or isinstance(value, type):
        return value
    changed = {}
    for field in fields(value):
        if version not in notes_of(field).versions:
            continue
        current = getattr(value, field.name)
        rule = next((rule for ending, rule in rules.items() if field.name.endswith(ending)), None)
        changed[field.name] = (
            rule(current) if rule and isinstance(current, int) else fitted(current, version, rules)
        )
    return replace(value, **changed)


KNOWN_CODES = {int(code) for code in ErrorCode if code <= 119}
OF_KIO: Rules = {
    "error_code": lambda code: code if code in KNOWN_CODES else code % 100,
    "_ms": lambda time: time % 2**31,
    "timestamp": lambda time: time % 2**40,
}
"""It knows no error code that is not Kafka's, and no odd times."""


def agrees(oracle: KafkaPython | Kio, key: int, kind: str, version: int, message: Any) -> None:
    body = encode(message, version)
    assert decode(ours(key, kind), version, body) == message
    theirs = oracle.decode(key, kind, version, body)
    assert differences(message, theirs, version) == []
    assert oracle.encode(key, kind, version, theirs) == body


@pytest.mark.parametrize("pair", BOTH_WAYS, ids=named)
def test_messages_agree_with_other_readings_of_the_schemas(pair: tuple[int, str]) -> None:
    """kafka-python back to version 0, kio up to the newest: same bytes, same names.

    Each message goes to both, for drawing it takes most of the time.
    """
    key, kind = pair
    oracles = oracles_by_version(key, kind)

    @settings(QUICK, max_examples=2)
    @given(several_messages(ours(key, kind), list(oracles), count=35))
    def check(drawn: list[tuple[int, Any]]) -> None:
        for version, message in drawn:
            for oracle in oracles[version]:
                rules = OF_KIO if oracle is KIO else NO_ERROR if pair == API_VERSIONS_RESPONSE else None
                agrees(oracle, key, kind, version, fitted(message, version, rules) if rules else message)

    check()


@pytest.mark.parametrize("key", NAMES, ids=NAMES.get)
def test_every_version_is_met_by_an_oracle(key: int) -> None:
    """A version that neither library speaks would be checked by nobody, unless it equals the next one."""
    for kind in (REQUEST, RESPONSE):
        met = {*KAFKA_PYTHON.versions(key, kind), *KIO.versions(key, kind)}
        for version in set(versions_of(key)) - met:
            assert wire_form(ours(key, kind), version) == wire_form(ours(key, kind), version + 1), version
