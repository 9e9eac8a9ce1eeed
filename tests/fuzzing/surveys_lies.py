"""Lies inside of answers: fields with hostile values, lists that repeat or lack entries, messages made up.

A lie keeps to the schema, so that it is read, and believed: what damaged bytes do not reach. Names and
numbers are mostly those that the cluster has, in wrong places.
"""

from random import Random
from typing import Any

from kelpie.errors import ErrorCode
from kelpie.wire.compiler.layout import ArrayOf, Blob, FieldAt, Kind, Layout, StructOf, Text, layout, part
from kelpie.wire.schema import Fixed
from tests.fuzzing.mutation import mutated
from tests.fuzzing.surveys_truth import GROUPS, TOPICS

NO_UTF8 = "\ue123"
"""Stands for half a surrogate pair, which the encoder would refuse: `with_surrogates` puts it in."""
_WORDS = (
    *GROUPS,
    *TOPICS,
    "__consumer_offsets",
    "__transaction_state",
    "",
    "\x1b[2J\x1b]0;owned\x07",
    "a\nb\r\0c",
    "../../etc/passwd",
    "\u202e\ufeff😀",
    NO_UTF8,
    f"alpha{NO_UTF8}",
    "x" * 300,
    "Stable",
    "Empty",
    "Dead",
    "classic",
    "Consumer",
    "share",
    "streams",
    "consumer",
    "range",
    "nan",
    "-1",
    "9" * 5000,
    "1e400",
    "compact",
    "true",
)
_HOSTS = ("host1", "host2", "host3", "a..b", "x" * 64, "", "\0", "::1", "[", "127.0.0.1")
_PORTS = (9091, 9092, 9093, 0, -1, 65_536, 2**31 - 1, 7)
_NODES = (1, 2, 3, 0, -1, 4, 1001, 2**31 - 1, -(2**31))
_SMALL = (0, 1, 2, 3, -1, -2, 5, 49, 50)
_CODES = (*(int(code) for code in ErrorCode), 32_767, -32_768, 9999)
_ENDS = {
    "b": (-(2**7), 2**7 - 1),
    "h": (-(2**15), 2**15 - 1),
    "i": (-(2**31), 2**31 - 1),
    "q": (-(2**63), 2**63 - 1),
    "H": (0, 2**16 - 1),
    "I": (0, 2**32 - 1),
}
_TIMES = (1_700_000_000_000, 1_700_000_000_000_000, 253_402_300_800_000, -62_135_596_800_001)
_FLOATS = (float("nan"), float("inf"), float("-inf"), -0.0, 1e308, 5e-324)
_COMPLAINTS = (b"[" * 20_000, b'{"status":"invalid_token"}', b"{}", b"null", b"\xff\xfe", b"9" * 5000)
_ITERATIONS = (b"4096", b"4096", "\u00b2".encode(), b"9" * 5000, b"-1", b"")
_SHORT_LISTS = (0, 1, 1, 2, 3)
_MOST_REPEATS = 60


def with_surrogates(frame: bytes) -> bytes:
    """Where `NO_UTF8` stands, the bytes of half a surrogate pair, which are no UTF-8."""
    return frame.replace(NO_UTF8.encode(), b"\xed\xa0\x80")


def tell_lies(message: Any, version: int, chance: Random) -> None:
    """Changes one to four places of a message."""
    at = layout(type(message), version)
    for _ in range(chance.choice((1, 1, 2, 4))):
        _lie_somewhere(message, at, chance)


def _lie_somewhere(owner: Any, at: Layout, chance: Random) -> None:
    """Goes down from the root by chance, and lies where it ends."""
    while True:
        field = chance.choice((*at.fields, *at.tagged) or (None,))
        if field is None:
            return
        value = getattr(owner, field.name)
        match field.kind:
            case StructOf() if value is not None and chance.random() < 0.9:
                owner, at = value, part(field.kind.cls, at.version, at.flexible)
                continue
            case ArrayOf(element=StructOf() as element) if value and chance.random() < 0.75:
                owner, at = chance.choice(value), part(element.cls, at.version, at.flexible)
                continue
            case ArrayOf() if value and chance.random() < 0.8:
                _lie_about_list(value, field, at, chance)
            case _:
                setattr(owner, field.name, hostile(field, at, chance, value))
        return


def _lie_about_list(values: list[Any], field: FieldAt, at: Layout, chance: Random) -> None:
    assert isinstance(field.kind, ArrayOf)
    match chance.randrange(5):
        case 0:
            values.append(chance.choice(values))
        case 1:
            del values[chance.randrange(len(values)) :]
        case 2:
            values *= chance.randint(2, _MOST_REPEATS)
        case 3:
            values.append(_invented_value(field.kind.element, field.name, at, chance))
        case _:
            chance.shuffle(values)


def invented(cls: type[Any], version: int, chance: Random) -> Any:
    """A message made up from nothing, in the words of the cluster."""
    return _invented_struct(layout(cls, version), chance)


def hostile(field: FieldAt, at: Layout, chance: Random, before: Any = None) -> Any:
    """A value of the field's kind that a sane broker would not send here."""
    if field.nullable and chance.random() < 0.3:
        return None
    if isinstance(field.kind, Blob) and before and chance.random() < 0.7:
        return mutated(before, chance)
    return _invented_value(field.kind, field.name, at, chance)


def _invented_struct(at: Layout, chance: Random) -> Any:
    values = {
        field.name: None
        if field.nullable and chance.random() < 0.2
        else field.default
        if field.tag is not None and chance.random() < 0.5
        else _invented_value(field.kind, field.name, at, chance)
        for field in (*at.fields, *at.tagged)
    }
    return at.cls(**values)


def _invented_value(kind: Kind, name: str, at: Layout, chance: Random) -> Any:
    match kind:
        case Fixed(code="?"):
            return chance.random() < 0.5
        case Fixed(code="d"):
            return chance.choice(_FLOATS)
        case Fixed(code="16s"):
            return chance.choice((bytes(16), chance.randbytes(16)))
        case Fixed():
            return _number(kind.code, name, chance)
        case Text():
            return chance.choice(_HOSTS if "host" in name else _WORDS)
        case Blob():
            return chance.randbytes(chance.choice((0, 1, 6, 40)))
        case ArrayOf():
            count = chance.choice(_SHORT_LISTS)
            return [_invented_value(kind.element, name, at, chance) for _ in range(count)]
        case StructOf():
            return _invented_struct(part(kind.cls, at.version, at.flexible), chance)


def _number(code: str, name: str, chance: Random) -> int:
    """Often one that means something where it stands."""
    low, high = _ENDS[code]
    if chance.random() < 0.3:
        return chance.choice((low, high, 0, -1 if low < 0 else 1))
    if name == "error_code":
        return 0 if chance.random() < 0.4 else chance.choice(_CODES)
    known: tuple[int, ...] = _SMALL
    if name == "port":
        known = _PORTS
    elif name.endswith(("node_id", "leader_id", "nodes", "replicas", "controller_id", "broker_id")):
        known = _NODES
    elif "time" in name and code == "q":
        known = _TIMES
    return min(high, max(low, chance.choice(known)))


def challenge_of(mechanism: str, said: bytes, chance: Random) -> bytes:
    """What a broker says to a step of a login. It does not know the password, so SCRAM never ends well."""
    if not mechanism.startswith("SCRAM"):
        return b"" if chance.random() < 0.7 else chance.choice(_COMPLAINTS)
    nonce = said.rpartition(b"r=")[2].partition(b",")[0]
    salt, iterations = chance.choice((b"c2FsdA==", b"", b"=")), chance.choice(_ITERATIONS)
    first = b"r=" + nonce + b"more,s=" + salt + b",i=" + iterations
    return chance.choice((first, first, b"v=c2FsdA==", b"e=no", chance.randbytes(20)))
