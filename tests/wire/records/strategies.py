"""Random records, as Hypothesis strategies."""

from hypothesis import strategies as st

from kelpie.wire.records import Codec, Headers, Record, TimestampType

T = 1_700_000_000_000

MAGICS_AND_CODECS = [
    (magic, codec) for magic in (0, 1, 2) for codec in Codec if magic == 2 or codec < Codec.ZSTD
]

_BLOB = st.none() | st.binary(max_size=20) | st.binary(min_size=60, max_size=70) | st.just(b"abc" * 20_000)
_TIMESTAMP = st.integers(T, T + 10_000) | st.integers(-1, 2**62)
_HEADERS = st.lists(
    st.tuples(st.text(st.characters(codec="utf-8"), max_size=5), st.none() | st.binary(max_size=5)),
    max_size=3,
).map(tuple)


@st.composite
def records(draw: st.DrawFn, magic: int = 2, gaps: bool = True) -> list[Record]:
    """Records as they read back: what a magic cannot hold, they do not have."""
    offset = draw(st.integers(0, 2**40))
    made: list[Record] = []
    for _ in range(draw(st.integers(1, 8))):
        headers: Headers = draw(_HEADERS) if magic == 2 else ()
        timestamp, timestamp_type = draw(_TIMESTAMP), TimestampType.CREATE
        if magic == 0:
            timestamp, timestamp_type = -1, TimestampType.NONE
        made.append(Record(offset, timestamp, timestamp_type, draw(_BLOB), draw(_BLOB), headers))
        offset += draw(st.integers(1, 5)) if gaps else 1
    return made
