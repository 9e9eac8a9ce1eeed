"""Scrapes of KoP: series by group, also those that KoP did not escape."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kelpie.evidence import read_evidence
from kelpie.evidence.dating import name_order
from kelpie.evidence.kop_scrapes import broker_in, read_kop_scrape, read_unescaped
from kelpie.observations import Observations, Scrape, TrafficSeries
from tests.evidence import truth, unpacked

KOP = "kop-3.2-scrapes"


def read(text: str, name: str = "a.prom") -> Observations:
    rows = read_kop_scrape(text.split("\n"), name)
    assert rows is not None
    return rows


def test_series_of_what_consumers_read_become_rows() -> None:
    """Messages, bytes and entries; nothing else of a scrape is about groups."""
    rows = read(
        "# TYPE kop_server_MESSAGE_OUT counter\n"
        'kop_server_MESSAGE_OUT{cluster="test",group="billing",partition="2",topic="orders"} 1041\n'
        "# TYPE kop_server_MESSAGE_OUT counter\n"
        'kop_server_BYTES_OUT{cluster="test",group="",partition="2",topic="orders"} 311670 1794776373922\n'
        'kop_server_ENTRIES_OUT{cluster="test",partition="2",topic="orders"} 664\n'
        'kop_server_MESSAGE_IN{cluster="test",partition="2",topic="orders"} 7\n'
        'pulsar_rate_in{cluster="test"} 1.5\n',
        "scrapes/broker-2.prom",
    )
    name, broker = "scrapes/broker-2.prom", "broker 2"
    assert rows.traffic == [
        TrafficSeries(name, "orders", 2, "billing", "MESSAGE_OUT", 1041, broker, None, f"{name}:2"),
        TrafficSeries(name, "orders", 2, "", "BYTES_OUT", 311670, broker, 1794776373922, f"{name}:4"),
        TrafficSeries(name, "orders", 2, None, "ENTRIES_OUT", 664, broker, None, f"{name}:5"),
    ]
    assert rows.scrapes == [Scrape(broker, 1794776373922, name)]
    assert rows.known_groups == {"billing": f"labels in {name}"}
    assert rows.malformed == []


def test_a_scrape_without_traffic_is_a_scrape() -> None:
    """A series that the next one has is new then."""
    rows = read("kop_server_ALIVE_CHANNEL_COUNT 3\n")
    assert (len(rows.scrapes), rows.traffic) == (1, [])


def test_a_scrape_of_others_is_none_of_kops() -> None:
    """The doctor has nothing to say about it."""
    assert read_kop_scrape(["up 1", 'kafka_consumergroup_lag{consumergroup="a"} 1', 'broken{"'], "a") is None


@pytest.mark.parametrize("value", ["NaN", "-1", "1e30", "+Inf", "seven"])
def test_values_that_no_counter_has_are_passed_over(value: str) -> None:
    """A row holds a number of 63 bits."""
    rows = read(f'up 1\nkop_server_MESSAGE_OUT{{group="a",partition="0",topic="t"}} {value}\nkop_server_X 1')
    assert rows.traffic == []


@given(
    group=st.text(st.characters(codec="utf-8", exclude_characters="\r"), max_size=12),
    topic=st.text("abc./-:", min_size=1, max_size=9),
)
def test_any_name_that_kop_does_not_escape_is_read_as_it_is(group: str, topic: str) -> None:
    """Unless it looks like labels itself."""
    if '",' in group or "}" in group:
        return
    text = f'kop_server_MESSAGE_OUT{{cluster="c",group="{group}",partition="3",topic="{topic}"}} 12'
    series = read_unescaped(text)
    assert series is not None
    assert series.labels == {"cluster": "c", "group": group, "partition": "3", "topic": topic}
    assert (series.name, series.value) == ("kop_server_MESSAGE_OUT", "12")


@given(st.lists(st.text('kop_server_BYTES_OUT{}",=\\ 01ab', max_size=40), max_size=8))
def test_no_lines_make_the_reader_stumble(lines: list[str]) -> None:
    """A file may hold anything."""
    rows = read_kop_scrape(lines, "x.prom")
    if rows is not None:
        assert len(rows.malformed) <= len(lines)


def test_all_malformed_lines_of_the_recording_are_in_rows_with_their_group() -> None:
    """Eighteen series on 24 lines: a name with an end of line in it makes two of one."""
    name = "07_odd_names.prom"
    rows = read((unpacked(KOP) / name).read_text(encoding="utf-8"), name)
    quoted = [
        f"{name}:{int(row.source.rpartition(':')[2]) + place}: {line!r}"
        for row in rows.malformed
        for place, line in enumerate(row.text.split("\n"))
    ]
    malformed = (truth(KOP) / "malformed_lines.txt").read_text(encoding="utf-8").splitlines()
    assert sorted(quoted) == sorted(line for line in malformed if line.startswith(name))
    assert {row.group for row in rows.malformed} == {'we"ird', "back\\slash", "new\nline"}
    of_hostile = [row for row in rows.traffic if row.group == "new\nline" and row.counter == "MESSAGE_OUT"]
    assert {(row.topic, row.partition, row.value) for row in of_hostile} == {("t7", 0, 98), ("t7", 1, 102)}


@pytest.mark.parametrize(
    ("name", "broker"),
    [
        ("04a_before_move_broker1.prom", "broker 1"),
        ("scrapes/broker-12/1.prom", "broker 12"),
        ("broker-1/copy-of-broker_02.prom", "broker 2"),
        ("Node3.txt", "broker 3"),
        ("kop-3.2/a.prom", ""),
        ("stockbroker7.prom", ""),
    ],
)
def test_the_name_of_a_file_may_tell_the_broker(name: str, broker: str) -> None:
    """A scrape itself does not."""
    assert broker_in(name) == broker


def test_prometheus_names_the_instance() -> None:
    """One file of a federation has the series of several brokers: each has its own scrape."""
    rows = read(
        'kop_server_MESSAGE_OUT{instance="a:8080",partition="0",topic="t"} 1\n'
        'kop_server_MESSAGE_OUT{instance="b:8080",partition="0",topic="t"} 2\n'
    )
    assert [row.broker for row in rows.scrapes] == ["a:8080", "b:8080"]


def test_names_of_files_tell_the_order_where_times_are_missing() -> None:
    """Numbers first, then words, then the whole name."""
    names = [
        "01_x.prom",
        "01b_y.prom",
        "02_a.prom",
        "02_a_after.prom",
        "11_before_kill.prom",
        "11_after_restart.prom",
        "12a_t20s.prom",
        "12b_t566s_before_move.prom",
    ]
    assert sorted(sorted(names, key=len), key=name_order) == names


def test_folders_stand_for_brokers_where_names_do_not(tmp_path: Path) -> None:
    """Two scrapes of two brokers are not two scrapes of one."""
    for folder in ("east", "west"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "metrics.prom").write_text("# TYPE kop_server_X gauge\nkop_server_X 1\n")
    assert [row.broker for row in read_evidence([tmp_path]).scrapes] == ["east", "west"]


def test_file_times_count_if_they_tell(tmp_path: Path) -> None:
    """Files of one copying have nearly the same time, which is not that of the scrapes."""
    for number, name in enumerate(("b.prom", "a.prom")):
        (tmp_path / name).write_text("# TYPE kop_server_X gauge\nkop_server_X 1\n")
        os.utime(tmp_path / name, (1_800_000_000 + number * 600,) * 2)
    rows = read_evidence([tmp_path])
    assert {row.source: row.at for row in rows.scrapes} == {
        "b.prom": 1_800_000_000_000,
        "a.prom": 1_800_000_600_000,
    }
    os.utime(tmp_path / "a.prom", (1_800_000_001,) * 2)
    assert {row.at for row in read_evidence([tmp_path]).scrapes} == {None}
