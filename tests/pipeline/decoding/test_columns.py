"""Texts of rows: places in the data of a segment, as Arrow has them."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kelpie.pipeline.decoding import columns
from kelpie.pipeline.decoding.compiled import PAD

_TEXTS = st.sampled_from(
    ["", "g", "group-1", "group-2", "exactly8", "exactly9", "nine char", "a" * 33, "订单"]
)
_ROWS = st.lists(st.tuples(st.none() | _TEXTS, st.integers(1, 5)), max_size=20)


@given(_ROWS)
def test_names_are_what_was_written_however_often_one_follows_itself(
    runs: list[tuple[str | None, int]],
) -> None:
    texts = [text for text, times in runs for _ in range(times)]
    pieces = [b"" if text is None else text.encode() for text in texts]
    data = np.frombuffer(b"".join(pieces) + bytes(PAD), np.uint8)
    sizes = np.array(
        [-1 if text is None else len(piece) for text, piece in zip(texts, pieces, strict=True)], np.int64
    )
    starts = np.cumsum([0, *map(len, pieces)])[:-1].astype(np.int64)
    names = columns._names(data, starts, sizes)
    assert names.to_pylist() == texts
    assert len(names.dictionary) == len(set(texts) - {None})


def test_a_name_that_is_not_utf8_is_read_as_java_reads_it() -> None:
    data = np.frombuffer(b"\xff\xfeab" + bytes(PAD), np.uint8)
    starts, sizes = np.array([0, 0, 2], np.int64), np.array([2, 2, 2], np.int64)
    assert columns._names(data, starts, sizes).to_pylist() == ["��", "��", "ab"]
