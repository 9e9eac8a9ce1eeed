"""What a round of the tables that follow step by step costs, with little and with much history in the lake.

1,000 groups read four partitions each. History is one commit per position and half hour, so that thirty days
are 5.8 million commits; a survey of brokers, leaders, groups, ends and offsets every two hours; and a new
generation of each group once a day. The round that is measured is 30 s in which each position commits every
five seconds (24,000 commits), with one survey, and with a rebalance of ten groups, of which a log tells, too:
other ones in each round. Bronze is written directly, so that nothing but the rounds is measured. One lake is
filled, and copied when it has so many days. The last line is such rounds with three million commits: 100,000
per second for 30 s, which two cores must do in 60 s of CPU. They come one after the other, as a stream's do,
and the last one counts: it has what large rounds leave for the next one.
"""

import json
import shutil
import sys
import tempfile
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.measure import Ratio, Report
from bench.tree import cost, cpu_of_session
from kelpie.model.words import counted

if TYPE_CHECKING:
    from kelpie.pipeline.storage.frames import ClusterTables
    from kelpie.pipeline.storage.parquet import Writer

GROUPS, POSITIONS, OFFSETS_PARTITIONS = 1_000, 4, 50
DAYS = (1, 10, 30)
HISTORY_S, SURVEYS_S, ROUND_S, EVERY_S = 1_800, 7_200, 30, 5
REBALANCED = 10
"""Groups, in the round that is measured."""
MANY = 3_000_000
ROUNDS, LARGE_ROUNDS = 5, 3
_WARM_UP = 2
GROWTH = 1.3
_TWO_CORES_S = 2.0 * ROUND_S
_CLUSTER = "c"
_BEGAN = datetime(2026, 11, 1, tzinfo=UTC)


def run() -> Report:
    rows, costs = [], {}
    with tempfile.TemporaryDirectory(prefix="kelpie-bench-") as room:
        filled = _apart("fill", Path(room))
        for days in DAYS:
            found = _apart(str(days), Path(room))
            costs[days] = found["round_s"]
            rows.append(_row(f"round of {ROUND_S} s, {counted(days, 'day')} of history", found))
        many = _apart("many", Path(room))
        rows.append(_row(f"round of {ROUND_S} s with 100,000 commits per second", many))
    first, last = DAYS[0], DAYS[-1]
    return Report(
        "Rounds",
        "All tables that follow step by step, findings included. CPU seconds of Java and Python, of each job "
        f"the least of {ROUNDS} rounds, with 100,000 commits per second the last one of {LARGE_ROUNDS}; and "
        "those of the diagnosis (findings, open_question, group_health, coordinator_timeline, "
        "coordinator_outage). All tables of the first day, made as "
        f"a whole: {filled['whole_s']:.0f} CPU s.",
        ("what", "commits before", "new commits", "CPU s", "of it diagnosis"),
        rows,
        [
            Ratio("rounds-growth-30-days", costs[first] / costs[last], "one-day-of-history"),
            Ratio("rounds-100k-commits-a-second", _TWO_CORES_S / many["round_s"], "two-cores"),
        ],
    )


def _row(what: str, found: dict[str, float]) -> list[str]:
    numbers = f"{found['history']:,.0f}", f"{found['new']:,.0f}"
    return [what, *numbers, f"{found['round_s']:.1f}", f"{found['diagnosis_s']:.1f}"]


def _apart(what: str, room: Path) -> dict[str, float]:
    """In a process of its own: else the second one would find Java warm."""
    command = [sys.executable, "-m", "bench.rounds", str(room), what]
    found: dict[str, float] = json.loads(cost(command).output)
    return found


def _measure(room: Path, what: str) -> dict[str, float]:
    from kelpie.pipeline.spark.session import open_session  # noqa: PLC0415 - not in the process that measures.
    from kelpie.pipeline.storage.frames import ClusterTables  # noqa: PLC0415
    from kelpie.pipeline.storage.lake import Lake  # noqa: PLC0415

    spark = open_session("local[2]", settings={"spark.driver.memory": "4g"})
    folder = room / f"lake-{what}"
    if what == "fill":
        found = _fill(room, ClusterTables(spark, Lake(folder), _CLUSTER))
    else:  # A lake that other rounds have changed takes in no batch a second time.
        days = DAYS[0] if what == "many" else int(what)
        shutil.copytree(room / f"days-{days}", folder)
        state: list[int] = json.loads((room / f"days-{days}.json").read_text())
        found = _rounds(ClusterTables(spark, Lake(folder), _CLUSTER), state, is_many=what == "many")
        shutil.rmtree(folder)
    spark.stop()
    return found


def _fill(room: Path, tables: "ClusterTables") -> dict[str, float]:
    """Lakes with so many days of history, and the state that rounds leave."""
    log = _Log(tables)
    log.append(EVERY_S, EVERY_S, groups=range(GROUPS))
    _make(tables, "first")
    whole, before = 0.0, 0
    for days in DAYS:
        log.append((days - before) * 86_400, HISTORY_S, SURVEYS_S)
        before = days
        found = _make(tables, f"{days} days")
        whole = whole or sum(found.values())
        shutil.copytree(room / "lake-fill", room / f"days-{days}")
        (room / f"days-{days}.json").write_text(json.dumps(log.state))
    return {"whole_s": whole}


def _rounds(tables: "ClusterTables", state: list[int], *, is_many: bool) -> dict[str, float]:
    log = _Log(tables)
    log.state = state
    rebalancing = (range(first, first + REBALANCED) for first in range(0, GROUPS, REBALANCED))
    for _ in range(_WARM_UP):  # What these rounds compile, later ones use.
        log.append(ROUND_S, EVERY_S, ROUND_S, groups=next(rebalancing))
        _make(tables, "warm-up")
    history = log.written
    costs = []
    for _ in range(LARGE_ROUNDS if is_many else ROUNDS):
        every_s = ROUND_S * GROUPS * POSITIONS / MANY if is_many else EVERY_S
        log.append(ROUND_S, every_s, ROUND_S, groups=next(rebalancing))
        costs.append(_make(tables, "round"))
    # Other work on the machine disturbs a job now and then, and hardly ever in all rounds.
    of_round = costs[-1] if is_many else {name: min(each[name] for each in costs) for name in costs[-1]}
    new = (log.written - history) / len(costs)
    round_s, diagnosis_s = sum(of_round.values()), of_round["findings"]
    return {"history": history, "new": new, "round_s": round_s, "diagnosis_s": diagnosis_s}


def _make(tables: "ClusterTables", told: str) -> dict[str, float]:
    """CPU seconds by job."""
    from kelpie.pipeline.graph import JOBS, waves  # noqa: PLC0415 - not in the process that measures.
    from kelpie.pipeline.rounds.following import do, due  # noqa: PLC0415

    costs = {}
    for wave in waves(job for job in JOBS if job.follower is not None):
        for job in wave:
            before = cpu_of_session()
            assert job.follower is not None
            work = due(tables, job.follower)
            if work is not None:
                do(tables, job.follower, work)
            costs[job.name] = cpu_of_session() - before
            if "-v" in sys.argv:
                print(f"{told} {job.name}: {costs[job.name]:.1f}", file=sys.stderr, flush=True)
    return costs


class _Log:
    """What happens to all groups, one step after the other, into bronze."""

    def __init__(self, tables: "ClusterTables") -> None:
        import numpy as np  # noqa: PLC0415 - not in the process that measures.

        self._tables, self._now_ms, self._rounds = tables, int(_BEGAN.timestamp() * 1000), 0
        self._batch = self._survey = self._generation = 0
        self.written = self._end = 0
        count = GROUPS * POSITIONS
        self._position = np.arange(count)
        self._group = self._position // POSITIONS
        self._place = np.empty(count, np.int64)
        """Among the commits of a step in its offsets partition."""
        self._offsets: Any = np.zeros(count, np.int64)
        for partition in range(OFFSETS_PARTITIONS):
            mine = self._group % OFFSETS_PARTITIONS == partition
            self._place[mine] = np.arange(mine.sum())

    @property
    def state(self) -> list[int]:
        """Where the log ends."""
        return [self._now_ms, self._rounds, self._batch, self._survey, self._generation, self.written]

    @state.setter
    def state(self, values: list[int]) -> None:
        self._now_ms, self._rounds, self._batch, self._survey, self._generation, self.written = values

    def append(
        self, seconds: float, every_s: float, surveys_s: float | None = None, groups: Iterable[int] = ()
    ) -> None:
        """`groups`: those that rebalance now; without any, all do so once a day."""
        from kelpie.pipeline.storage.parquet import Writer  # noqa: PLC0415 - as above.
        from kelpie.pipeline.tables import TABLES  # noqa: PLC0415

        lake = self._tables.lake
        writers = {}
        for name in ("offset_commit", "cluster_snapshot", "group_metadata", "log_event"):
            lake.open(TABLES[name])
            writers[name] = Writer(TABLES[name], lake.path(TABLES[name]), _CLUSTER)
        surveyed = rebalanced = self._now_ms
        for step in range(max(1, round(seconds / every_s))):
            now_ms = self._now_ms + int(step * every_s * 1000)
            self._commit(writers["offset_commit"], now_ms)
            if surveys_s is not None and now_ms >= surveyed:
                self._look(writers["cluster_snapshot"], now_ms + 1)
                surveyed = now_ms + int(surveys_s * 1000)
            if surveys_s is not None and now_ms >= rebalanced and not groups:
                self._rebalance(writers, now_ms, range(GROUPS))
                rebalanced = now_ms + 86_400_000
        self._rebalance(writers, self._now_ms, groups)
        self._now_ms += int(max(seconds, every_s) * 1000)
        for name, writer in writers.items():
            is_new = lake.add(TABLES[name], writer.close(), application="bench", version=self._batch)
            assert is_new, f"{name} has batch {self._batch} already"
        self._batch += 1

    def _commit(self, writer: "Writer", now_ms: int) -> None:
        import numpy as np  # noqa: PLC0415 - as above.
        import pyarrow as pa  # noqa: PLC0415

        position, group = self._position, self._group
        # One position of a thousand goes back, for half a minute.
        self._end = self._rounds * 100
        self._offsets = self._end - np.where((position + now_ms // 30_000) % 997 == 0, 150, 0)
        at = np.full(len(position), now_ms, "datetime64[ms]")
        times = pa.array(at).cast(pa.timestamp("us", "UTC"))
        groups = pa.array([f"group-{number}" for number in range(GROUPS)])
        topics = pa.array([f"topic-{number}" for number in range(GROUPS)])
        in_partition = len(position) // OFFSETS_PARTITIONS
        writer.write(
            pa.table(
                {
                    "offsets_partition": pa.array(group % OFFSETS_PARTITIONS, pa.int32()),
                    "log_offset": pa.array(2 * self._rounds * in_partition + self._place),
                    "written": times,
                    "committed": times,
                    "group": pa.DictionaryArray.from_arrays(pa.array(group, pa.int32()), groups),
                    "topic": pa.DictionaryArray.from_arrays(pa.array(group, pa.int32()), topics),
                    "partition": pa.array(position % POSITIONS, pa.int32()),
                    "offset": pa.array(self._offsets),
                }
            ),
            {"is_transactional": False, "source": "topic", "log_epoch": 1},
        )
        self._rounds += 1
        self.written += len(position)

    def _look(self, writer: "Writer", now_ms: int) -> None:
        """A survey after a commit: the ends of all logs, and all offsets. Every tenth group is behind."""
        import numpy as np  # noqa: PLC0415 - as above.
        import pyarrow as pa  # noqa: PLC0415
        import pyarrow.compute as pc  # noqa: PLC0415

        position, group = self._position, self._group
        times = pa.array(np.full(len(position), now_ms, "datetime64[ms]")).cast(pa.timestamp("us", "UTC"))
        topics = pa.array([f"topic-{number}" for number in range(GROUPS)])
        groups = pa.array([f"group-{number}" for number in range(GROUPS)])
        ends = pa.array(self._end + np.where(group % 10 == 0, 500, 0)).cast(pa.string())
        offsets = pa.array(self._offsets).cast(pa.string())
        partitions = pa.array(position % POSITIONS).cast(pa.string())
        names = pa.array(group).cast(pa.string())
        of_topic = ['"topic":"topic-', names, '","partition":', partitions, f',"at":{now_ms},']
        join = pc.binary_join_element_wise
        of_ends = join("{", *of_topic, '"earliest":0,"latest":', ends, ',"stable":', ends, "}", "")
        of_offsets = join('{"group":"group-', names, '",', *of_topic, '"offset":', offsets, "}", "")
        name = {"snapshot": f"survey {self._survey:06}", "source": "broker 1"}
        writer.write(pa.Table.from_pylist(_cluster(now_ms, name["snapshot"]), writer.table.schema), {})
        for first, kind, body in ((0, "ends", of_ends), (len(position), "committed", of_offsets)):
            named = kind == "committed"
            columns = {
                "at": times,
                "topic": topics.take(pa.array(group)),
                "partition": pa.array(position % POSITIONS, pa.int32()),
                "group": groups.take(pa.array(group, mask=np.full(len(group), not named))),
                "ordinal": pa.array(position + first + 10_000),
                "body": body,
                **{key: pa.array([text] * len(group)) for key, text in {"kind": kind, **name}.items()},
            }
            writer.write(pa.table(columns), {})
        self._survey += 1

    def _rebalance(self, writers: "Mapping[str, Writer]", now_ms: int, groups: Iterable[int]) -> None:
        """A new generation of each, and two lines of the coordinator's log."""
        import pyarrow as pa  # noqa: PLC0415 - as above.

        from kelpie.pipeline.tables import TABLES  # noqa: PLC0415

        self._generation += 1
        at = datetime.fromtimestamp(now_ms / 1000, UTC)
        in_partition = len(self._position) // OFFSETS_PARTITIONS
        records, lines = [], []
        for number in groups:
            group = f"group-{number}"
            members = [_member(group, which) for which in ("a", "b", "c" if self._generation % 2 else "d")]
            records.append(
                {
                    "offsets_partition": number % OFFSETS_PARTITIONS,
                    "log_offset": (2 * self._rounds + 1) * in_partition + number // OFFSETS_PARTITIONS,
                    "written": at,
                    "group": group,
                    "key_type": 2,
                    "generation": self._generation,
                    "protocol": "range",
                    "members": members,
                    "is_removal": False,
                    "source": "topic",
                    "log_epoch": 1,
                }
            )
            of_log = {"at": at, "group": group, "source": "server.log", "line": self._generation, "text": ""}
            why = {"generation": self._generation - 1, "reason": "removing member on LeaveGroup"}
            lines.append({**of_log, "kind": "broker: rebalance-started", **why})
            lines.append({**of_log, "kind": "broker: member-left", "member": f"{group}-c", "part": 1})
        for name, rows in (("group_metadata", records), ("log_event", lines)):
            writers[name].write(pa.Table.from_pylist(rows, TABLES[name].schema), {})
        self._rounds += 1


def _member(group: str, which: str) -> dict[str, Any]:
    timeouts = {"session_timeout_ms": 45_000, "rebalance_timeout_ms": 300_000}
    return {"member_id": f"{group}-{which}", "client_id": group, "client_host": "/10.0.0.1", **timeouts}


def _cluster(now_ms: int, snapshot: str) -> list[dict[str, Any]]:
    """A survey without positions: its header, three brokers, the offsets topic, and all groups."""
    from kelpie.evidence.snapshot_files import Header, header_line  # noqa: PLC0415 - as above.
    from kelpie.observations import (  # noqa: PLC0415
        OFFSETS_TOPIC,
        BrokerView,
        GroupState,
        Listing,
        Member,
        Observations,
        PartitionView,
    )
    from kelpie.pipeline.sources.snapshots.outputs import rows  # noqa: PLC0415

    nodes, seen = (1, 2, 3), Observations()
    at: Any = {"at": now_ms, "source": "broker 1"}
    for node in nodes:
        seen.brokers.append(BrokerView(node, f"kafka-{node}", 9092, alive=True, **at))
        for partition in range(OFFSETS_PARTITIONS):
            leader = nodes[partition % len(nodes)]
            seen.partitions.append(
                PartitionView(OFFSETS_TOPIC, partition, leader, nodes, nodes, told_by=node, **at)
            )
    names = tuple(f"group-{number}" for number in range(GROUPS))
    seen.listings.append(Listing(1, names, **at))
    for group in names:
        members = (Member(f"{group}-a", group, "/10.0.0.1"), Member(f"{group}-b", group, "/10.0.0.1"))
        seen.states.append(GroupState(group, "Stable", protocol_type="consumer", members=members, **at))
    line = header_line(Header(_CLUSTER, now_ms - 1, now_ms, "kafka-1:9092", answered=3))
    header = {"cluster": _CLUSTER, "snapshot": snapshot, "kind": "survey", "source": snapshot, "body": line}
    return [{**header, "ordinal": -1}, *rows(seen, {}, cluster=_CLUSTER, snapshot=snapshot)]


if __name__ == "__main__":
    print(json.dumps(_measure(Path(sys.argv[1]), sys.argv[2])))
