"""`kelpie names`: names that hash to a partition."""

from itertools import islice

import pytest

from kelpie.cli import main
from kelpie.model.partitioning import names_on, partition_for
from tests.evidence import unpacked


def names(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[str]:
    assert main(["names", *arguments]) == 0
    return capsys.readouterr().out.split("\n")[:-1]


def test_names_live_on_the_partition_and_are_always_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    """To try whether a partition is sick, as the people of the first incident did by hand."""
    arguments = ["--partition", "43", "-n", "20", "--prefix", "trial 消费者 ", "--partitions", "50"]
    found = names(capsys, *arguments)
    assert len(set(found)) == 20
    assert {partition_for(name, 50) for name in found} == {43}
    assert all(name.startswith("trial 消费者 ") for name in found)
    assert names(capsys, *arguments) == found


def test_fifty_partitions_are_assumed_with_a_word(capsys: pytest.CaptureFixture[str]) -> None:
    """On stderr: the names can be piped on."""
    assert main(["names", "--partition", "43", "-n", "1"]) == 0
    said = capsys.readouterr()
    assert partition_for(said.out.strip(), 50) == 43
    assert "taken to have 50 partitions" in said.err


def test_a_describe_output_tells_how_many_there_are(capsys: pytest.CaptureFixture[str]) -> None:
    """Without a cluster."""
    file = unpacked("kafka-4.3.1-coordinator-outage") / "commands" / "during-topics.txt"
    found = names(capsys, "--partition", "25", "-n", "3", "--describe", str(file))
    assert [partition_for(name, 50) for name in found] == [25, 25, 25]


@pytest.mark.parametrize("partitions", [1, 2, 31, 50, 62])
def test_every_partition_can_be_had(partitions: int) -> None:
    """Of multiples of 31 the last letter decides alone, and digits do not reach all."""
    for partition in range(partitions):
        (name,) = islice(names_on(partition, partitions), 1)
        assert partition_for(name, partitions) == partition


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--partition", "50", "--partitions", "50"], "from 0 to 49"),
        (["--partition", "-1"], "There is no partition -1"),
        (["--partition", "1", "-n", "0"], "choose 1 to"),
    ],
)
def test_mistakes_are_told(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    """With what there is instead."""
    assert main(["names", *arguments]) == 64
    assert said in capsys.readouterr().err
