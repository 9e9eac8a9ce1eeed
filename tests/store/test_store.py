"""The store: what an earlier survey saw comes back, and nothing that is wrong with the file stops anybody."""

import multiprocessing
import sqlite3
import stat
from contextlib import closing
from pathlib import Path

import pytest

from kelpie import store_remembering
from kelpie.model.names import TopicPartition
from kelpie.observations import (
    BrokerView,
    Commit,
    Committed,
    Generation,
    GroupRemoved,
    GroupState,
    Illness,
    Listing,
    LogEnds,
    Member,
    Observations,
    PartitionView,
)
from kelpie.observations.earlier import AGES_MS, EARLIER_SURVEY, kept
from kelpie.store import Store, default_folder

NOW = 1_800_000_000_000
MINUTE, HOUR, DAY = 60_000, 3_600_000, 86_400_000


def a_survey(at: int, offset: int = 7, group: str = "billing") -> Observations:
    member = Member("app-1", "app", "/10.0.0.1", "static", assigned=(TopicPartition("orders", 0),), epoch=3)
    return Observations(
        listings=[Listing(1, (group,), at=at)],
        states=[GroupState(group, "Stable", "consumer", "consumer", "uniform", 5, (member,), 1, at=at)],
        committed=[Committed(group, "orders", 0, offset, leader_epoch=4, at=at, source="broker 1")],
        ends=[LogEnds("orders", 0, 1, 9, 8, leader_epoch=4, at=at)],
    )


def test_what_was_seen_comes_back(tmp_path: Path) -> None:
    """States, offsets and ends, as rows of an earlier time."""
    Store(tmp_path).remember("cluster", a_survey(NOW - HOUR), NOW - HOUR)
    found = Store(tmp_path).recall("cluster", NOW)
    before = a_survey(NOW - HOUR)
    assert found.known_groups == {"billing": "an earlier survey (2027-01-15 07:00 UTC)"}
    assert [row._replace(source="broker 1") for row in found.committed] == before.committed
    assert [row._replace(source="") for row in found.ends] == before.ends
    (state,) = found.states
    assert (state.group, state.epoch, state.members) == ("billing", 5, before.states[0].members)


def test_clusters_are_kept_apart(tmp_path: Path) -> None:
    """The same group name in two clusters means two groups."""
    store = Store(tmp_path)
    store.remember("one", a_survey(NOW), NOW)
    assert not store.recall("two", NOW + 1).known_groups


def test_where_a_lost_group_stood_is_kept_until_it_is_heard_of_again(tmp_path: Path) -> None:
    """Its coordinator is dead for weeks: no survey has its offsets any more, and somebody wants them back."""
    store = Store(tmp_path)
    store.remember("cluster", a_survey(NOW - 20 * DAY, offset=41), NOW - 20 * DAY)
    store.remember("cluster", a_survey(NOW - MINUTE, group="other"), NOW - MINUTE)
    found = store.recall("cluster", NOW)
    assert {row.group: row.offset for row in found.committed} == {"billing": 41, "other": 7}
    assert next(row for row in found.committed if row.group == "billing").at == NOW - 20 * DAY


def test_where_a_lost_group_stood_outlasts_the_survey_that_told_it(tmp_path: Path) -> None:
    """The survey tells it of all groups at once. When the survey goes, it is kept for those who are lost."""
    store, later = _with_lost_groups(tmp_path, "lost", "gone")
    assert _count(tmp_path, "seen WHERE offsets IS NOT NULL") == 0, "nothing is packed group by group"
    assert _count(tmp_path, "stood") == 1
    recalled = store.recall("cluster", later + 1000)
    assert {row.group: row.offset for row in recalled.committed} == {"lost": 7, "gone": 7, "billing": 9}
    assert {row.at for row in recalled.committed if row.group == "lost"} == {NOW}
    store.remember("cluster", a_survey(later + 2000, 10, "lost"), later + 2000)
    recalled = store.recall("cluster", later + 3000)
    assert [row.offset for row in recalled.committed if row.group == "lost"] == [10]
    assert [row.offset for row in recalled.committed if row.group == "gone"] == [7]
    again = Observations().add(*(a_survey(later + 4000, 11, each) for each in ("lost", "gone", "billing")))
    store.remember("cluster", again, later + 4000)
    assert _count(tmp_path, "stood") == 0, "each of them is heard of again"


def test_where_lost_groups_stood_is_read_as_earlier_releases_kept_it(tmp_path: Path) -> None:
    """They wrote the offsets beside the name of each group."""
    store, later = _with_lost_groups(tmp_path, "lost")
    change(
        file_of(tmp_path),
        "UPDATE seen SET offsets = (SELECT data FROM stood) WHERE name = x'6c6f7374'",
        "DROP TABLE stood",
    )
    recalled = store.recall("cluster", later + 1000)
    assert {row.group: row.offset for row in recalled.committed} == {"lost": 7, "billing": 9}
    assert store.words == []


def _with_lost_groups(folder: Path, *groups: str) -> tuple[Store, int]:
    """No survey tells of them after the first, which is gone; and the time of the last survey."""
    store = Store(folder)
    store.remember("cluster", a_survey(NOW, 8).add(*(a_survey(NOW, 7, group) for group in groups)), NOW)
    assert _count(folder, "stood") == 0
    later = NOW + AGES_MS[-1] + 1000
    for at in (NOW + 60_000, later):
        store.remember("cluster", a_survey(at, 9), at)
    return store, later


def _count(folder: Path, rows: str) -> int:
    with closing(sqlite3.connect(file_of(folder))) as database:
        (count,) = database.execute(f"SELECT count(*) FROM {rows}").fetchone()
        return int(count)


def test_many_groups_are_noted_at_once_as_each_would_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of 10,000 groups nearly all are told again by each survey; one statement for each would cost most."""
    groups = [f"group-{number}" for number in range(6)]
    for folder, at_once in (("each", 1000), ("at-once", 1)):
        monkeypatch.setattr(store_remembering, "_MANY", at_once)
        store = Store(tmp_path / folder)
        for at, seen in enumerate((groups, groups, groups[:4], [*groups[:3], "new"], groups)):
            rows = Observations().add(*(a_survey(NOW + at * HOUR, at, group) for group in seen))
            store.remember("cluster", rows, NOW + at * HOUR)
            if at == 3:
                assert _rows(tmp_path / folder) == {
                    (b"new", 3, 3, 3),
                    *((f"group-{number}".encode(), 0, 3, 3) for number in range(3)),
                    (b"group-3", 0, 2, 2),
                    (b"group-4", 0, 1, 1),
                    (b"group-5", 0, 1, 1),
                }
    assert _rows(tmp_path / "each") == _rows(tmp_path / "at-once")


def _rows(folder: Path) -> set[tuple[bytes, int, int, int]]:
    """Of each group: when it was first seen, when last, and when its offsets were told, in hours."""
    with closing(sqlite3.connect(file_of(folder))) as database:
        rows = database.execute("SELECT name, first_at, last_at, offsets_at FROM seen").fetchall()
        return {(name, *((at - NOW) // HOUR for at in times)) for name, *times in rows}


def test_groups_that_only_their_commits_betray_are_kept(tmp_path: Path) -> None:
    """Kafka 0.9 lists no group without members; in the offsets topic they are."""
    seen = Observations(
        commits=[
            Commit("committed", "orders", 0, 5, NOW - HOUR),
            Commit("committed", "orders", 0, 6, NOW - MINUTE),
            Commit("deleted", "orders", 0, 5, NOW - HOUR),
            Commit("deleted", "orders", 0, -1, NOW - MINUTE),
        ]
    )
    store = Store(tmp_path)
    store.remember("cluster", seen, NOW)
    found = store.recall("cluster", NOW + 1)
    assert list(found.known_groups) == ["committed"]
    assert [(row.group, row.offset) for row in found.committed] == [("committed", 6)]


def test_groups_that_only_their_generations_show_are_kept(tmp_path: Path) -> None:
    """A group that began while its coordinator was surveyed: listed too early, and nothing is committed yet.

    If that coordinator dies now, no later survey sees the group. One that was deleted since is not kept.
    """
    seen = Observations(
        listings=[Listing(1, (), at=NOW)],
        generations=[Generation("new", 1, at=NOW), Generation("deleted", 3, at=NOW - MINUTE)],
        removals=[GroupRemoved("deleted", NOW), GroupRemoved("new", NOW - HOUR)],
    )
    Store(tmp_path).remember("cluster", seen, NOW)
    assert list(Store(tmp_path).recall("cluster", NOW + 1).known_groups) == ["new"]


def test_who_held_the_offsets_topic_is_kept(tmp_path: Path) -> None:
    """Kafka 0.9 forgets dead replicas, and nobody forgets where to look for them."""
    seen = Observations(
        brokers=[BrokerView(2, "kafka-2", 9092, alive=True, at=NOW)],
        partitions=[
            PartitionView("__consumer_offsets", 0, 2, (2, 3), (2, 3), told_by=2, at=NOW),
            PartitionView("orders", 0, 2, (2, 3), (2, 3), told_by=2, at=NOW),
        ],
    )
    store = Store(tmp_path)
    store.remember("cluster", seen, NOW)
    found = store.recall("cluster", NOW + 1)
    assert [(row.topic, row.replicas, row.told_by) for row in found.partitions] == [
        ("__consumer_offsets", (2, 3), None)
    ]
    assert [(row.node_id, row.address, row.alive) for row in found.brokers] == [(2, "kafka-2:9092", None)]


def test_names_of_any_kind_are_kept(tmp_path: Path) -> None:
    """Kafka takes any string; logs may hold what is none."""
    names = ["", "消费者组", "😀", "a'b;--", "\ud800", "\x00"]
    store = Store(tmp_path)
    store.remember("cluster", Observations(listings=[Listing(1, tuple(names))]), NOW)
    assert set(store.recall("cluster", NOW + 1).known_groups) == set(names)
    assert not store.words


def file_of(folder: Path, cluster: str = "cluster") -> Path:
    (file,) = (folder / "surveys").glob(f"{cluster}-*.v3.sqlite3")
    return file


def change(file: Path, *statements: str) -> None:
    with closing(sqlite3.connect(file, isolation_level=None)) as database:
        for statement in statements:
            database.execute(statement)


RUBBISH = b"this is no database, and it is long enough to look at" * 100


def test_a_file_that_is_no_store_is_set_aside(tmp_path: Path) -> None:
    """A doctor that does not start is worse than one that forgot."""
    store = Store(tmp_path)
    store.remember("cluster", a_survey(NOW), NOW)
    file = file_of(tmp_path)
    file.write_bytes(RUBBISH)
    assert store.recall("cluster", NOW + 1).known_groups == {}
    assert "was unreadable" in store.words[0]
    assert f"It is now {file.name}.unreadable." in store.words[0]
    store.remember("cluster", a_survey(NOW), NOW)
    assert store.recall("cluster", NOW + 1).known_groups
    assert len(store.words) == 1


def test_the_memory_of_other_clusters_is_not_set_aside(tmp_path: Path) -> None:
    """One bad file took the offsets of all clusters with it, on the day on which they were wanted."""
    store = Store(tmp_path)
    for name in ("cluster", "other"):
        store.remember(name, a_survey(NOW), NOW, addresses=[f"{name}:9092"])
    file_of(tmp_path).write_bytes(RUBBISH)
    store.recall("cluster", NOW + 1)
    assert store.recall("other", NOW + 1).committed
    assert store.name_of(["cluster:9092"]) == "cluster"


def test_an_index_that_cannot_be_read_costs_the_addresses_alone(tmp_path: Path) -> None:
    """What is kept of a cluster is found by its id."""
    store = Store(tmp_path)
    store.remember("cluster", a_survey(NOW), NOW, addresses=["kafka-1:9092"])
    (tmp_path / "surveys" / "index.v3.sqlite3").write_bytes(RUBBISH)
    assert store.name_of(["kafka-1:9092"]) == "kafka-1:9092"
    assert "The addresses of clusters are forgotten." in store.words[0]
    assert store.recall("cluster", NOW + 1).committed


def test_what_was_set_aside_is_never_overwritten(tmp_path: Path) -> None:
    """The second bad file replaced the first, which held the offsets."""
    store = Store(tmp_path)
    store.remember("cluster", a_survey(NOW), NOW)
    file = file_of(tmp_path)
    texts = [bytes([letter]) * 5_000 for letter in b"abc"]
    for text in texts:
        file.write_bytes(text)
        store.recall("cluster", NOW + 1)
    aside = [file.with_name(f"{file.name}.unreadable{number}") for number in ("", "-2", "-3")]
    assert [copy.read_bytes() for copy in aside] == texts
    assert all(stat.S_IMODE(copy.stat().st_mode) & 0o077 == 0 for copy in aside)


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE survey SET data = x'00' WHERE at < {now}",
        "UPDATE survey SET at = 'yesterday' WHERE at < {now}",
        "UPDATE seen SET offsets = x'00', offsets_at = 5 WHERE name = x'6f6c64'",
        "UPDATE seen SET last_at = 9e18 WHERE name = x'6f6c64'",
        "UPDATE seen SET last_at = 9000000000000000000 WHERE name = x'6f6c64'",
        "INSERT INTO seen VALUES ('cluster', 'text', 1, 1, NULL, NULL)",
        "INSERT INTO seen VALUES ('cluster', x'ff', 1, 1, NULL, NULL)",
        "INSERT INTO illness VALUES ('cluster', x'61', 'KLP310', 'x', 'y')",
        "INSERT INTO presence VALUES ('cluster', 2, 'x', NULL, NULL, NULL, 1)",
        "INSERT INTO stood VALUES ('cluster', 5, x'00')",
    ],
)
def test_a_row_that_cannot_be_read_is_left_out_alone(damage: str, tmp_path: Path) -> None:
    """The database is sound, and what somebody wrote into it is not. All other rows count."""
    store = Store(tmp_path)
    store.remember("cluster", a_survey(NOW - HOUR, group="old"), NOW - HOUR)
    store.remember("cluster", a_survey(NOW), NOW)
    change(file_of(tmp_path), damage.format(now=NOW))
    found = store.recall("cluster", NOW + 1)
    assert "billing" in found.known_groups
    assert [row.offset for row in found.committed if row.group == "billing"] == [7]
    if "yesterday" not in damage:  # That is no time before now.
        (word,) = store.words
        assert word.startswith("1 row of ")
        assert "cannot be read and is left out; the first: " in word
    store.remember("cluster", a_survey(NOW + MINUTE, offset=8), NOW + MINUTE)
    assert [
        row.offset for row in store.recall("cluster", NOW + HOUR).committed if row.at == NOW + MINUTE
    ] == [8]
    assert not list(tmp_path.glob("surveys/*.unreadable*"))


def test_files_of_other_formats_stay(tmp_path: Path) -> None:
    """A newer release keeps its own file: each release remembers, and none takes the other's for broken."""
    store = Store(tmp_path)
    store.remember("cluster", a_survey(NOW), NOW)
    newer = file_of(tmp_path).with_name(file_of(tmp_path).name.replace(".v3.", ".v4."))
    newer.write_bytes(b"another format")
    store.remember("cluster", a_survey(NOW + 1), NOW + 1)
    assert not store.words
    assert newer.read_bytes() == b"another format"


def test_a_file_whose_format_is_not_that_of_its_name_is_set_aside(tmp_path: Path) -> None:
    """Somebody renamed it."""
    store = Store(tmp_path)
    store.remember("cluster", a_survey(NOW), NOW)
    change(file_of(tmp_path), "PRAGMA user_version = 99")
    assert not store.recall("cluster", NOW + 1).known_groups
    assert "it has format 99" in store.words[0]


def a_former_store(folder: Path) -> Path:
    """One file for all clusters, as releases before format 3 wrote it."""
    scratch = Store(folder / "scratch")
    scratch.remember("one", a_survey(NOW, offset=1), NOW, ill=[Illness("billing", "KLP310", NOW, NOW)])
    scratch.remember("two", a_survey(NOW, offset=2), NOW, found={("billing", "KLP310"): "warning"})
    former = folder / "surveys.sqlite3"
    with closing(sqlite3.connect(former, isolation_level=None)) as database:
        for name in ("one", "two"):
            database.execute("ATTACH ? AS part", (str(file_of(folder / "scratch", name)),))
            for table in ("survey", "seen", "illness", "found"):
                if name == "one":
                    (text,) = database.execute(
                        "SELECT sql FROM part.sqlite_master WHERE name = ?", (table,)
                    ).fetchone()
                    database.execute(text)
                database.execute(f"INSERT INTO main.{table} SELECT * FROM part.{table}")
            database.execute("DETACH part")
        database.execute("CREATE TABLE address (address TEXT PRIMARY KEY, cluster TEXT, at INTEGER)")
        database.execute("INSERT INTO address VALUES ('kafka-1:9092', 'one', 1)")
        database.execute("PRAGMA user_version = 2")
    return former


def test_what_the_one_file_of_earlier_releases_held_is_taken_over(tmp_path: Path) -> None:
    """Nothing that was known is lost with a new format, and the file stays for the release that wrote it."""
    former = a_former_store(tmp_path)
    before = former.read_bytes()
    store = Store(tmp_path)
    assert store.name_of(["kafka-1:9092"]) == "one"
    assert [row.offset for row in store.recall("one", NOW + 1).committed] == [1]
    assert [row.code for row in store.recall("one", NOW + 1).illnesses] == ["KLP310"]
    assert [row.offset for row in store.recall("two", NOW + 1).committed] == [2]
    assert store.found("two") == {("billing", "KLP310"): "warning"}
    assert not store.words
    assert former.read_bytes() == before


@pytest.mark.parametrize("text", [RUBBISH, b""])
def test_a_file_of_earlier_releases_that_cannot_be_read_stays(text: bytes, tmp_path: Path) -> None:
    """It is told once, and no reason to stop."""
    former = tmp_path / "surveys.sqlite3"
    former.write_bytes(text)
    store = Store(tmp_path)
    store.remember("cluster", a_survey(NOW), NOW)
    store.recall("cluster", NOW + 1)
    assert former.read_bytes() == text
    assert len(store.words) == (1 if text else 0), store.words
    assert store.recall("cluster", NOW + 1).committed


def test_clusters_that_nobody_has_looked_at_for_a_season_are_forgotten(tmp_path: Path) -> None:
    """Each start of a lab is a new cluster: their files must not pile up."""
    store = Store(tmp_path)
    store.remember("old", a_survey(NOW - 100 * DAY), NOW - 100 * DAY)
    old = file_of(tmp_path, "old")
    store.remember("cluster", a_survey(NOW), NOW)
    assert not old.exists()
    assert file_of(tmp_path).exists()


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    """A home that is not writable must not stop a diagnosis."""
    (tmp_path / "file").write_text("")
    store = Store(tmp_path / "file" / "folder")
    store.remember("cluster", a_survey(NOW), NOW)
    assert "--store DIR" in store.words[0]


def test_a_file_that_somebody_holds_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Locked for longer than we wait: this once the past is left out."""
    monkeypatch.setattr("kelpie.store_files._PATIENCE_S", 0.01)
    store = Store(tmp_path)
    store.remember("cluster", a_survey(NOW), NOW)
    holder = sqlite3.connect(file_of(tmp_path), isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    assert not store.recall("cluster", NOW + 1).known_groups
    holder.close()
    assert "locked" in store.words[0]
    assert store.recall("cluster", NOW + 1).known_groups


def _remember_many(folder: Path, name: str) -> None:
    store = Store(folder)
    for number in range(20):
        store.remember("cluster", a_survey(NOW + number, group=f"{name}-{number}"), NOW + number)
    assert not store.words, store.words


def test_several_doctors_may_write_at_once(tmp_path: Path) -> None:
    """A watch in one window, a look in another."""
    spawn = multiprocessing.get_context("spawn")
    processes = [spawn.Process(target=_remember_many, args=(tmp_path, name)) for name in ("a", "b", "c")]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
    assert [process.exitcode for process in processes] == [0, 0, 0]
    assert len(Store(tmp_path).recall("cluster", NOW + HOUR).known_groups) == 60


def test_nobody_else_may_read_it(tmp_path: Path) -> None:
    """Names of groups tell about a business."""
    store = Store(tmp_path)
    store.remember("cluster", a_survey(NOW), NOW)
    assert stat.S_IMODE(file_of(tmp_path).stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "surveys").stat().st_mode) == 0o700


def test_a_watch_does_not_make_it_grow(tmp_path: Path) -> None:
    """A survey each second for an hour leaves a handful, spread over that hour."""
    moments: set[int] = set()
    for second in range(3600):
        at = NOW + second * 1000
        moments = kept({*moments, at}, at)
    ages = sorted(NOW + 3_599_000 - at for at in moments)
    assert ages[0] == 0
    assert len(ages) <= len(AGES_MS) + 4
    assert ages[-1] >= 30 * MINUTE


@pytest.mark.parametrize("every_s", [2, 10, 30])
def test_a_watch_can_always_prove_a_minute_and_six(every_s: int) -> None:
    """Seen on real Kafka: with the oldest survey of each span alone, a fault of 6 min was proven after half
    an hour, and a minute of silence now and then.
    """
    moments: set[int] = set()
    for second in range(0, 3600, every_s):
        at = NOW + second * 1000
        moments = kept({*moments, at}, at)
        ages = [at - moment for moment in moments]
        assert second < 120 or any(MINUTE <= age <= 2 * MINUTE for age in ages), second
        assert second < 900 or any(6 * MINUTE <= age <= 15 * MINUTE for age in ages), second


def test_old_surveys_and_groups_are_forgotten(tmp_path: Path) -> None:
    """What nobody has seen for a season does not come back."""
    store = Store(tmp_path)
    store.remember("cluster", a_survey(NOW - 100 * DAY, group="old"), NOW - 100 * DAY)
    store.remember("cluster", a_survey(NOW), NOW)
    found = store.recall("cluster", NOW + 1)
    assert set(found.known_groups) == {"billing"}
    assert {row.group for row in found.states} == {"billing"}


def test_a_group_that_its_coordinator_does_not_know_is_forgotten_after_a_day(tmp_path: Path) -> None:
    """It was deleted; to name it for ever would be noise."""
    store = Store(tmp_path)
    store.remember("cluster", a_survey(NOW - 2 * DAY), NOW - 2 * DAY)
    store.remember("cluster", a_survey(NOW - HOUR, group="new"), NOW - HOUR)
    store.remember("cluster", Observations(), NOW, gone=["billing", "new"])
    assert set(store.recall("cluster", NOW + 1).known_groups) == {"new"}


def test_rows_of_the_past_are_not_taken_for_new(tmp_path: Path) -> None:
    """What was recalled for a diagnosis is handed back with the fresh rows."""
    store = Store(tmp_path)
    store.remember("cluster", a_survey(NOW - HOUR), NOW - HOUR)
    seen = a_survey(NOW, offset=9).add(store.recall("cluster", NOW))
    store.remember("cluster", seen, NOW)
    offsets = [(row.at, row.offset) for row in store.recall("cluster", NOW + 1).committed]
    assert offsets == [(NOW - HOUR, 7), (NOW, 9)]


def test_it_lives_where_the_xdg_specification_says(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """And relative paths are ignored, as it demands."""
    monkeypatch.delenv("KELPIE_STATE", raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert default_folder() == tmp_path / "kelpie"
    monkeypatch.setenv("XDG_STATE_HOME", "relative")
    assert default_folder() == Path.home() / ".local" / "state" / "kelpie"


def test_a_cluster_of_which_nobody_answers_is_known_by_its_addresses(tmp_path: Path) -> None:
    """All its brokers are dead: nobody tells its id, and its groups matter now."""
    store = Store(tmp_path)
    store.remember("an-id", a_survey(NOW), NOW, addresses=["kafka-1:9092", "kafka-2:9092"])
    assert store.name_of(["kafka-2:9092", "kafka-9:9092"]) == "an-id"
    assert store.name_of(["other:9092"]) == "other:9092"


def test_a_cluster_without_an_id_is_the_same_whoever_of_it_is_asked(tmp_path: Path) -> None:
    """Kafka 0.9 has no ids. Its groups were forgotten when another of its brokers was given with -b."""
    store = Store(tmp_path)
    name = store.name_of(["kafka-1:9092", "kafka-2:9092"], nameless=True)
    store.remember(name, a_survey(NOW), NOW, addresses=["kafka-1:9092", "kafka-2:9092"])
    assert store.name_of(["kafka-2:9092"], nameless=True) == name


def test_a_cluster_without_an_id_is_none_that_has_one(tmp_path: Path) -> None:
    """Another cluster had the same port before."""
    store = Store(tmp_path)
    store.remember("an-id", a_survey(NOW), NOW, addresses=["localhost:9092"])
    assert store.name_of(["localhost:9092"], nameless=True) == "localhost:9092"


def test_when_a_group_was_ill_is_kept_as_one_period(tmp_path: Path) -> None:
    """A watch finds the same illness every ten seconds. The next outage is another one."""
    store = Store(tmp_path)
    for at in range(NOW, NOW + 60_000, 10_000):
        store.remember("c", Observations(), at, ill=[Illness("billing", "KLP310", NOW - 30_000, at)])
    later = NOW + 600_000
    store.remember("c", Observations(), later, ill=[Illness("billing", "KLP310", later - 30_000, later)])
    periods = [(row.since, row.at) for row in store.recall("c", later + 1).illnesses]
    assert periods == [(NOW - 30_000, NOW + 50_000), (later - 30_000, later)]
    assert not store.recall("another", later + 1).illnesses


def test_an_illness_without_a_known_beginning_is_one_period_too(tmp_path: Path) -> None:
    """Each look says that it began now. A look that did not find it ends the period."""
    store = Store(tmp_path)
    moments = [NOW + 10_000 * number for number in range(5)]
    for at in moments:
        ill = [] if at == moments[2] else [Illness("billing", "KLP101", at, at)]
        store.remember("c", Observations(), at, ill=ill)
    periods = [(row.since, row.at) for row in store.recall("c", moments[-1] + 1).illnesses]
    assert periods == [(moments[0], moments[1]), (moments[3], moments[4])]


def test_when_a_broker_was_away_is_kept(tmp_path: Path) -> None:
    """The next survey knows that it came back a moment ago. What nobody could say changes nothing."""
    store = Store(tmp_path)
    for at, alive in enumerate([True, False, False, None, True, True]):
        store.remember("c", Observations(), NOW + at, alive={2: alive})
    rows = store.recall("c", NOW + 10).brokers
    assert [(row.node_id, (row.at or 0) - NOW, row.alive) for row in rows] == [
        (2, 0, True),
        (2, 1, False),
        (2, 4, True),
        (2, 5, True),
    ]
    assert {row.source for row in rows} == {EARLIER_SURVEY}
    assert not store.recall("another", NOW + 10).brokers
