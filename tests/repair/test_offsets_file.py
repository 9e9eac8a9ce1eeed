"""The CSV of Kafka's own tool."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kelpie.model.names import TopicPartition
from kelpie.repair import offsets_file
from kelpie.repair.plan import CannotRepair

_NAMES = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs", "Z"]), min_size=1)
_OFFSETS = st.dictionaries(
    st.builds(TopicPartition, _NAMES, st.integers(0, 2**31 - 1)),
    st.integers(0, offsets_file.LARGEST_OFFSET),
    min_size=1,
)


@given(_OFFSETS, _NAMES, st.booleans())
def test_what_is_written_is_read_back(
    offsets: dict[TopicPartition, int], group: str, with_group: bool
) -> None:
    """Names may hold commas and quotes."""
    text = offsets_file.write(offsets, group if with_group else None)
    assert offsets_file.read(text, group, "f.csv") == offsets


def test_it_looks_as_the_tool_writes_it() -> None:
    """Seen with Kafka 4.3.1: no heading, quotes only where they are needed."""
    offsets = {TopicPartition("orders", 1): 7, TopicPartition("a.b_c", 1): 3}
    assert offsets_file.write(offsets) == "a.b_c,1,3\norders,1,7\n"
    assert offsets_file.write({TopicPartition("orders", 1): 7}, 'we"ird, g') == '"we""ird, g",orders,1,7\n'


def test_of_several_groups_the_one_that_is_asked_for_is_read() -> None:
    """The tool exports several groups into one file."""
    text = '"g1","orders",0,5\ng2,orders,0,6\n\n'
    assert offsets_file.read(text, "g2", "f.csv") == {TopicPartition("orders", 0): 6}


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("orders,0\n", "f.csv, line 1: it has 2 columns"),
        ("orders,0,5\norders,x,5\n", "f.csv, line 2: 'x' is not the number of a partition"),
        ("orders,0,-1\n", "'-1' is not the number of an offset"),
        ("orders,0,9223372036854775808\n", "is not the number of an offset"),
        (f"orders,0,{'9' * 5000}\n", "'99999' is not the number of an offset".replace("99999", "9" * 40)),
        ("orders,²,5\n", "'²' is not the number of a partition"),
        ("orders,0,5\norders,0,6\n", "orders-0 was named before"),
        ('"orders,0,5\n', "line 1"),
        ("other,orders,0,5\n", "holds no offsets of group billing; it names other"),
        ("", "holds no offsets of group billing."),
    ],
)
def test_what_cannot_be_read_is_said_with_its_line(text: str, complaint: str) -> None:
    """A wrong offset file must change nothing."""
    with pytest.raises(CannotRepair, match=complaint.replace(".", r"\.")):
        offsets_file.read(text, "billing", "f.csv")
