"""The case of one group from tables, without Spark."""

from pathlib import Path

import pytest

from kelpie.model.names import TopicPartition
from kelpie.pipeline.diagnosis.cluster import KnownCluster
from kelpie.pipeline.group_cases import read_case
from kelpie.pipeline.storage.lake import Lake
from tests.pipeline.lakes import a_lake, at

NOW = 1_800_000_000_000
HOUR = 3_600_000


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    place = {"topic": "orders", "partition": 0, "offsets_partition": 3, "is_transactional": False}
    times = [NOW - 30 * HOUR, NOW - HOUR, NOW - 1000]
    made = a_lake(
        tmp_path_factory.mktemp("lake"),
        {
            "commit_timeline": [
                {**place, "group": group, "log_offset": n, "committed": at(time), "offset": 100 * n}
                for group in ("billing", "other")
                for n, time in enumerate(times)
            ],
            "group_generation": [
                {
                    "group": "billing",
                    "incarnation": 0,
                    "generation": 7,
                    "began": at(NOW - HOUR),
                    "members": 1,
                    "protocol": "range",
                    "roster": [
                        {
                            "member_id": "app-1",
                            "client_id": "app",
                            "client_host": "/10.0.0.1",
                            "subscribed": ["orders"],
                            "assigned": [{"topic": "orders", "partition": 0}],
                        }
                    ],
                }
            ],
            "log_event": [
                {"group": "billing", "at": at(NOW - HOUR), "source": "a.log", "line": 3, "text": "gone"}
                | {"kind": "broker: member-left", "member": "app-2", "part": 0},
                {"group": "other", "at": at(NOW), "source": "a.log", "line": 4, "text": "gone"}
                | {"kind": "broker: member-left", "member": "app-9", "part": 0},
            ],
        },
    )
    return Lake(made.root, read_only=True)


def test_a_case_has_the_rows_of_its_group_alone(lake: Lake) -> None:
    known = KnownCluster(lake, "main")
    case = read_case(lake, known, known.view(NOW), "billing")
    assert case is not None
    name = TopicPartition("orders", 0)
    assert [row.offset for row in case.commits[name]] == [100, 200], "not those of yesterday"
    assert case.members is not None
    assert [(member.member_id, member.assigned) for member in case.members] == [("app-1", (name,))]
    assert case.generations[-1].generation == 7
    assert [event.member for event in case.events] == ["app-2"]
    assert case.track(name).offset == 200


def test_a_group_that_tables_do_not_know_has_no_case(lake: Lake) -> None:
    known = KnownCluster(lake, "main")
    assert read_case(lake, known, known.view(NOW), "no'body") is None


def test_the_folder_stays_as_it_was(lake: Lake) -> None:
    before = sorted(str(path) for path in Path(str(lake.root)).rglob("*"))
    known = KnownCluster(lake, "main")
    read_case(lake, known, known.view(NOW), "billing")
    assert sorted(str(path) for path in Path(str(lake.root)).rglob("*")) == before
