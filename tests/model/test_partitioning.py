import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kelpie.model.partitioning import java_hash, partition_for

MIN_VALUE = -(2**31)

# Made by Java: id, String.hashCode(), and the partition of Kafka 0.9.0.1 with 50 and with 7 partitions.
VECTORS = [
    pytest.param("", 0, 0, 0, id="empty"),
    pytest.param("a", 97, 47, 6, id="one-letter"),
    pytest.param("test-group", 627841412, 12, 2, id="positive"),
    pytest.param("my-group", -1906497762, 12, 1, id="negative"),
    pytest.param("connect-cluster", 1440343063, 13, 5, id="connect"),
    pytest.param("console-consumer-12345", 158455506, 6, 6, id="console-consumer"),
    pytest.param("group with spaces", -1717798746, 46, 6, id="spaces"),
    pytest.param("你好", 652829, 29, 2, id="chinese"),
    pytest.param("消费者组", 871131088, 38, 2, id="chinese-consumer-group"),
    pytest.param("订单-group", -2010233819, 19, 6, id="chinese-and-latin-negative"),
    pytest.param("😀", 1772899, 49, 2, id="surrogate-pair"),
    pytest.param("grp-🚀", -1235730485, 35, 3, id="surrogate-pair-negative"),
    pytest.param("👨\u200d👩\u200d👧", 338679017, 17, 5, id="joined-emoji"),
    pytest.param("\U0002000b", 1772491, 41, 0, id="plane-2"),
    pytest.param("\ud800", 55296, 46, 3, id="lone-surrogate"),
    pytest.param("caf\u00e9", 3045921, 21, 4, id="composed"),
    pytest.param("cafe\u0301", 94420228, 28, 0, id="decomposed"),
    pytest.param("polygenelubricants", MIN_VALUE, 0, 0, id="min-value"),
    pytest.param("DESIGNING WORKHOUSES", MIN_VALUE, 0, 0, id="min-value-with-space"),
]

# Lone surrogates included: Java strings may hold them, and so may group ids that come off a disk.
ANY_TEXT = st.text(st.characters(exclude_categories=()))


def reference_hash(text: str) -> int:
    """Sum up the powers that Java's documentation of String.hashCode gives, without any shortcut."""
    units: list[int] = []
    for point in map(ord, text):
        if point > 0xFFFF:
            units += [0xD800 + ((point - 0x10000) >> 10), 0xDC00 + ((point - 0x10000) & 0x3FF)]
        else:
            units.append(point)
    total: int = sum(unit * 31 ** (len(units) - 1 - index) for index, unit in enumerate(units)) % 2**32
    return total - 2**32 if total >= 2**31 else total


@pytest.mark.parametrize(("text", "expected", "_of_50", "_of_7"), VECTORS)
def test_hash_is_that_of_java(text: str, expected: int, _of_50: int, _of_7: int) -> None:
    """A hash that is off by one bit names the wrong coordinator."""
    assert java_hash(text) == expected


@pytest.mark.parametrize(("text", "_hash", "of_50", "of_7"), VECTORS)
def test_partition_is_that_of_kafka(text: str, _hash: int, of_50: int, of_7: int) -> None:
    """50 is the default number of partitions; 7, a prime, tells hashes apart that 50 does not."""
    assert (partition_for(text, 50), partition_for(text, 7)) == (of_50, of_7)


def test_negative_hash_is_not_masked() -> None:
    """KAFKA-1469: the mask, which producers use for keys, would give partition 36."""
    assert partition_for("my-group", 50) == 12
    assert (java_hash("my-group") & 0x7FFF_FFFF) % 50 == 36


@given(ANY_TEXT)
@example("\ud83d\ude00")  # two lone surrogates that together look like a pair
@example("\udc00\ud800")
def test_hash_equals_the_sum_of_powers(text: str) -> None:
    """The fast path for ASCII and the running 32-bit remainder must not change the result."""
    assert java_hash(text) == reference_hash(text)


@given(ANY_TEXT, st.integers(1, 2**31 - 1))
@example("polygenelubricants", 50)
def test_partition_is_always_one_that_exists(group_id: str, partitions: int) -> None:
    """No id, not even one of hash MIN_VALUE, may fall outside of the topic."""
    assert 0 <= partition_for(group_id, partitions) < partitions


@given(st.sampled_from(["polygenelubricants", "DESIGNING WORKHOUSES"]), st.integers(0, 40))
def test_min_value_stays_min_value_when_nul_is_appended(text: str, count: int) -> None:
    """31 is odd, so 31 * -2^31 is -2^31 again; it gives any number of ids for partition 0."""
    assert java_hash(text + "\0" * count) == MIN_VALUE
    assert partition_for(text + "\0" * count, 50) == 0


@pytest.mark.parametrize("partitions", [0, -1])
def test_a_topic_without_partitions_is_refused(partitions: int) -> None:
    """An unknown partition count is the caller's to handle; any number returned for it would be invented."""
    with pytest.raises(ValueError, match=f"at least 1, not {partitions}"):
        partition_for("my-group", partitions)
