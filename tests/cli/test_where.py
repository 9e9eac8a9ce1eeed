"""`kelpie where`: from a name to a broker."""

from pathlib import Path

import pytest

from kelpie.cli import main
from kelpie.lab import SyncCluster
from tests.evidence import unpacked

OLD = "kafka-0.9.0.1-coordinator-outage"
NEW = "kafka-4.3.1-coordinator-outage"


def rows(capsys: pytest.CaptureFixture[str]) -> dict[str, str]:
    """The line of each group, blanks squeezed."""
    head, *lines = capsys.readouterr().out.splitlines()
    assert head.startswith("GROUP")
    return {line.split()[0]: " ".join(line.split()) for line in lines}


def test_a_number_of_partitions_is_enough_for_hash_and_partition(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """As Kafka computes it: of 50 partitions my-group is in 12, and not in 36."""
    assert main(["where", "my-group", "你好", "--partitions", "50"]) == 0
    assert rows(capsys) == {"my-group": "my-group -1906497762 12", "你好": "你好 652829 29"}


def test_a_describe_of_0_9_shows_dead_leaders_for_what_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    """Without a cluster: the file alone betrays them."""
    file = unpacked(OLD) / "describe" / "describe-during.txt"
    assert main(["where", "billing-0", "billing-1", "--describe", str(file)]) == 1
    assert rows(capsys) == {
        "billing-0": "billing-0 1828025694 44 0 0,2 0 yes, but broker 0 alone is in sync (KLP106)",
        "billing-1": "billing-1 1828025695 45 1 1,2 1,2 no: broker 1 is dead (KLP101)",
    }


def test_a_describe_of_4_x_shows_no_leader(capsys: pytest.CaptureFixture[str]) -> None:
    """The newest output, in its own format."""
    file = unpacked(NEW) / "commands" / "during-topics.txt"
    assert main(["where", "checkout-293", "--describe", str(file)]) == 1
    assert rows(capsys)["checkout-293"].endswith("25 none 2,3 none no: it has no leader (KLP101)")


def test_a_cluster_is_asked(capsys: pytest.CaptureFixture[str]) -> None:
    """Also for names of groups that do not exist; looking at them creates none."""
    with SyncCluster(3, offsets_partitions=4) as cluster:
        cluster.create_topic("__consumer_offsets", assignment=dict.fromkeys(range(4), (1, 2, 3)))
        assert main(["where", "nobody", "-b", cluster.bootstrap_servers]) == 0
        assert rows(capsys)["nobody"].endswith("1,2,3 1,2,3 yes")
        assert not cluster.describe()["groups"]
        for number in range(4):
            cluster.make_leaderless("__consumer_offsets", number)
        assert main(["where", "nobody", "-b", cluster.bootstrap_servers]) == 1
        assert rows(capsys)["nobody"].endswith("no: it has no leader (KLP101)")


def test_a_cluster_without_the_topic_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    """Nobody lives anywhere yet."""
    with SyncCluster(1) as cluster:
        assert main(["where", "g", "-b", cluster.bootstrap_servers]) == 3
    assert "KLP104" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["g"], "--partitions N"),
        (["g", "--partitions", "0"], "at least one"),
        (["g", "--partitions", "5", "-b", "a:1"], "contradict"),
        (["g", "--describe", "/nowhere"], "is no file"),
    ],
)
def test_mistakes_are_told(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    """With what to do instead."""
    assert main(["where", *arguments]) == 64
    assert said in capsys.readouterr().err


def test_a_piece_of_a_describe_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Three lines of fifty: whoever counts them would place every group wrongly."""
    text = (unpacked(OLD) / "describe" / "describe-during.txt").read_text().splitlines()
    (tmp_path / "piece.txt").write_text("\n".join(text[44:47]) + "\n")
    assert main(["where", "g", "--describe", str(tmp_path / "piece.txt")]) == 64
    assert "does not describe all partitions" in capsys.readouterr().err


def test_names_cannot_command_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    """They come from others."""
    assert main(["where", "\x1b[2J", "--partitions", "50"]) == 0
    assert "\x1b" not in capsys.readouterr().out
