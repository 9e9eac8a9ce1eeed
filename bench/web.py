"""Pages and /metrics of `kelpie serve` with 10,000 groups of ten partitions, asked by 50 readers at once.

The server is a process of its own, and shows one look at made-up rows. Each reader asks for the next page as
soon as it has the last one, over a connection that stays open: no person does, so real readers wait less. The
readers are a raw asyncio client; other clients would take longer than the server.

Then a real Kafka 4.3.1 has as many groups: what the looks of `kelpie serve` cost, against those of `kelpie
doctor`, which take turns. The first look is measured from the start of the process, and the same start on the
cluster while it has no groups is subtracted from both: a web server has more to import. A later look costs
the CPU time between the ends of two looks: `kelpie doctor --watch` looks again and again, too. The doctor
prints what it found, as JSON; the server is asked for nothing but whether it has looked.
"""

import asyncio
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import NamedTuple
from urllib.error import URLError
from urllib.parse import quote
from urllib.request import urlopen

from bench.many_groups import GROUPS, PARTITIONS, TOPIC, commit_all
from bench.measure import Ratio, Report
from kelpie.model.names import TopicPartition
from kelpie.observations import (
    OFFSETS_TOPIC,
    BrokerView,
    Commit,
    Committed,
    GroupState,
    Listing,
    LogEnds,
    Member,
    Observations,
    PartitionView,
)
from kelpie.real.cluster import RealCluster
from kelpie.real.ports import free

ROUNDS = 5
READERS = 50
PAGES_EACH = 10
LIMIT_MS, METRICS_LIMIT_S, LOOK_LIMIT = 200, 1.0, 1.2
_LIMIT = f"{LOOK_LIMIT:g} times the CPU of kelpie doctor"
_LONGEST_LOOK_S = 300.0
_PAUSE_S = 3.0
"""Between looks: long enough to see in it that one has ended."""
_ASK_EVERY_S = 2.0
"""Less than the pause. To answer costs the server some milliseconds, which are no part of a look."""
_NOW = 1_800_000_000_000
_CLOCK = os.sysconf("SC_CLK_TCK")
_MOST_BYTES = 1_000_000
_LONGEST_LINE = 256 << 20
_LOOKS = 3


def rows() -> Observations:
    groups = tuple(f"group-{number:05}" for number in range(GROUPS))
    names = tuple(TopicPartition(TOPIC, number) for number in range(PARTITIONS))
    views = [
        PartitionView(OFFSETS_TOPIC, n, 1 + n % 3, (1, 2, 3), (1, 2, 3), told_by=1, at=_NOW)
        for n in range(50)
    ]
    views += [
        PartitionView(TOPIC, n, 1 + n % 3, (1, 2, 3), (1, 2, 3), told_by=1, at=_NOW)
        for n in range(PARTITIONS)
    ]
    members = {group: (Member(f"{group}-1", "app", "/10.0.0.1", assigned=names),) for group in groups}
    return Observations(
        brokers=[BrokerView(node, f"kafka-{node}", 9092, alive=True, at=_NOW) for node in (1, 2, 3)],
        partitions=views,
        listings=[
            Listing(node, groups if node == 1 else (), at=_NOW, source=f"broker {node}") for node in (1, 2, 3)
        ],
        states=[
            GroupState(each, "Stable", protocol="range", members=members[each], coordinator=1, at=_NOW)
            for each in groups
        ],
        committed=[
            Committed(each, *name, 100 + at % 20, at=_NOW) for each in groups for at, name in enumerate(names)
        ],
        commits=[
            Commit(each, *name, 100, _NOW - 5000 * back)
            for back in (2, 1)
            for each in groups
            for name in names
        ],
        ends=[LogEnds(*name, 0, 120, 120, at=_NOW - ago) for ago in (60_000, 0) for name in names],
    )


class Asked(NamedTuple):
    ms: list[float]
    cpu_ms: float
    """Of the server, for one page."""
    bytes: int


def run() -> Report:
    with subprocess.Popen(
        [sys.executable, "-m", "bench.web", "serve"], stdout=subprocess.PIPE, text=True
    ) as server:
        try:
            assert server.stdout is not None
            said = server.stdout.readline()
            port = int(re.findall(r"port (\d+)", said)[0])
            metrics = [_metrics(port, server.pid) for _ in range(3)]
            overview = asyncio.run(_ask_all(port, server.pid, lambda _: "/clusters/main/overview"))
            group = asyncio.run(_ask_all(port, server.pid, lambda chance: _group(chance.randrange(GROUPS))))
        finally:
            server.kill()
    (first_s, first_cpu_s, size), *later = metrics
    again_s = min(took for took, _, _ in later)
    doctor, serve = _costs_of_looks()
    return Report(
        title="Pages",
        about=f"{GROUPS:,} groups with {PARTITIONS} partitions each; {READERS} readers who make no pause.",
        header=["", "50 %, ms", "95 %, ms", "most, ms", "CPU of the server, ms", "bytes"],
        rows=[
            _row("overview", overview),
            _row("a group, any of them", group),
            [
                "/metrics, first after a look",
                f"{first_s * 1000:.0f}",
                "–",
                "–",
                f"{first_cpu_s * 1000:.0f}",
                f"{size:,}",
            ],
            ["/metrics, again", f"{again_s * 1000:.0f}", "–", "–", "–", f"{size:,}"],
            *serve.rows("kelpie serve"),
            *doctor.rows("kelpie doctor"),
        ],
        ratios=[
            Ratio("web-overview", LIMIT_MS / _percentile(overview.ms, 95), f"{LIMIT_MS} ms"),
            Ratio("web-group", LIMIT_MS / _percentile(group.ms, 95), f"{LIMIT_MS} ms"),
            Ratio("web-metrics", METRICS_LIMIT_S / first_cpu_s, f"{METRICS_LIMIT_S:g} s of CPU"),
            Ratio("web-look", LOOK_LIMIT * doctor.look_s / serve.look_s, _LIMIT),
            Ratio("web-later-look", LOOK_LIMIT * doctor.later_s / serve.later_s, _LIMIT),
            Ratio("web-look-with-start", LOOK_LIMIT * doctor.first_s / serve.first_s, _LIMIT),
        ],
    )


def _row(name: str, asked: Asked) -> list[str]:
    values = [_percentile(asked.ms, 50), _percentile(asked.ms, 95), max(asked.ms)]
    return [name, *(f"{value:.0f}" for value in values), f"{asked.cpu_ms:.1f}", f"{asked.bytes:,}"]


def _percentile(values: list[float], percent: int) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, len(ordered) * percent // 100)]


def _group(number: int) -> str:
    return f"/clusters/main/group?name={quote(f'group-{number:05}')}"


def _cpu_s(pid: int) -> float:
    """Of a process, in user mode and in the kernel."""
    with open(f"/proc/{pid}/stat", encoding="ascii") as file:
        fields = file.read(4096).rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _CLOCK


def _metrics(port: int, pid: int) -> tuple[float, float, int]:
    begun, cpu = time.perf_counter(), _cpu_s(pid)
    size = asyncio.run(_one(port, "/metrics"))
    return time.perf_counter() - begun, _cpu_s(pid) - cpu, size


class Looks(NamedTuple):
    """CPU seconds."""

    empty_s: float
    """From the start to the end of the first look at a cluster without groups."""
    first_s: float
    """The same, with all groups."""
    later_s: float
    """A look after that."""

    @property
    def look_s(self) -> float:
        """The first look without the start."""
        return self.first_s - self.empty_s

    def rows(self, who: str) -> list[list[str]]:
        costs = {
            f"{who}, start and first look": self.first_s,
            f"{who}, start and first look without groups": self.empty_s,
            f"{who}, a later look": self.later_s,
        }
        return [[name, "–", "–", "–", f"{cpu_s * 1000:.0f}", "–"] for name, cpu_s in costs.items()]


def _costs_of_looks() -> tuple[Looks, Looks]:
    """Of the doctor, and of the server: the least of each."""
    with RealCluster("4.3.1", brokers=1, config={"offsets.topic.num.partitions": 50}) as cluster:
        empty = _in_turn(cluster.bootstrap_servers, 1)
        asyncio.run(commit_all(cluster.bootstrap_servers))
        full = _in_turn(cluster.bootstrap_servers, _LOOKS)
    doctor, server = (
        Looks(without[0], first, min(later)) for without, (first, *later) in zip(empty, full, strict=True)
    )
    return doctor, server


def _in_turn(bootstrap: str, looks: int) -> tuple[list[float], list[float]]:
    """Of the doctor, and of the server: what each look costs, the first one with the start.

    Each process has a store of its own: a look costs more with every earlier one that the store tells of.
    """
    doctors, servers = [], []
    for _ in range(ROUNDS):
        with tempfile.TemporaryDirectory(prefix="kelpie-bench-") as store:
            doctors.append(_doctor(bootstrap, f"{store}/doctor", looks))
            servers.append(_server(bootstrap, f"{store}/serve", looks))
    return _least(doctors), _least(servers)


def _least(costs: Sequence[Sequence[float]]) -> list[float]:
    return [min(of_look) for of_look in zip(*costs, strict=True)]


def _doctor(bootstrap: str, store: str, looks: int) -> list[float]:
    """It prints a line after each look."""
    command = [sys.executable, "-m", "kelpie", "doctor", "-b", bootstrap, "--store", store, "--json"]
    with subprocess.Popen([*command, "--watch", f"{_PAUSE_S:g}"], stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            ends = []
            for _ in range(looks):
                assert process.stdout.readline(_LONGEST_LINE).endswith(b"\n"), "kelpie doctor has ended"
                ends.append(_cpu_s(process.pid))
        finally:
            process.kill()
    return _of_each(ends)


def _of_each(ends: Sequence[float]) -> list[float]:
    """By the CPU seconds of a process at the end of each look."""
    return [after - before for before, after in pairwise([0.0, *ends])]


def _server(bootstrap: str, store: str, looks: int) -> list[float]:
    (port,) = free(1)
    command = [sys.executable, "-m", "kelpie", "serve", "-b", f"main={bootstrap}", "--store", store]
    command += ["--every", f"{_PAUSE_S:g}", "--listen", f"127.0.0.1:{port}"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as server:
        try:
            deadline = time.monotonic() + _LONGEST_LOOK_S
            ends: dict[str, float] = {}
            while len(ends) < looks:
                assert server.poll() is None, "kelpie serve has ended"
                assert time.monotonic() < deadline, f"{len(ends)} looks within {_LONGEST_LOOK_S} s"
                time.sleep(_ASK_EVERY_S)
                at = _last_look(port)
                if at is not None:
                    ends.setdefault(at, _cpu_s(server.pid))
        finally:
            server.kill()
    return _of_each(list(ends.values()))


def _last_look(port: int) -> str | None:
    """The list of clusters is a small page, and says when the last look began."""
    try:
        with urlopen(f"http://127.0.0.1:{port}/index.json", timeout=_LONGEST_LOOK_S) as answer:
            (cluster,) = json.loads(answer.read(_MOST_BYTES))["clusters"]
            at: str | None = cluster["at"]
            return at
    except URLError:
        return None  # Nobody listens there yet.


async def _one(port: int, path: str) -> int:
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=2**20)
    size = await _ask(reader, writer, path)
    writer.close()
    return size


async def _ask_all(port: int, pid: int, path_of: Callable[[random.Random], str]) -> Asked:
    await _one(port, path_of(random.Random(0)))  # What is made once is not measured.
    times: list[float] = []
    sizes: list[int] = []

    async def read(seed: int) -> None:
        chance = random.Random(seed)
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=2**20)
        for _ in range(PAGES_EACH):
            begun = time.perf_counter()
            sizes.append(await _ask(reader, writer, path_of(chance)))
            times.append((time.perf_counter() - begun) * 1000)
        writer.close()

    cpu = _cpu_s(pid)
    await asyncio.gather(*map(read, range(1, READERS + 1)))
    return Asked(times, (_cpu_s(pid) - cpu) * 1000 / len(times), sizes[-1])


async def _ask(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, path: str) -> int:
    """The size of the answer, compressed as browsers and Prometheus ask for it."""
    writer.write(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept-Encoding: gzip\r\n\r\n".encode())
    head = await reader.readuntil(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200"), head
    length = re.search(rb"content-length: (\d+)", head)
    if length is not None:
        return len(await reader.readexactly(int(length[1])))
    size = 0
    while part := int(await reader.readuntil(b"\r\n"), 16):
        size += len(await reader.readexactly(part))
        await reader.readexactly(2)
    await reader.readexactly(2)
    return size


def serve() -> None:
    """In a process of its own: one look, then pages until it is killed."""
    import socket  # noqa: PLC0415 - only the server needs these.

    from kelpie.examination import Examination  # noqa: PLC0415
    from kelpie.web.application import application  # noqa: PLC0415
    from kelpie.web.serving.server import PageServer  # noqa: PLC0415
    from kelpie.web.watch import Watch  # noqa: PLC0415

    with Watch("main", Examination(evidence=rows()), 3600) as watch:
        while watch.latest is None:
            time.sleep(0.05)
        listener = socket.create_server(("127.0.0.1", 0), backlog=READERS * 2)
        server = PageServer(application([watch], ["127.0.0.1"]))
        print(f"port {listener.getsockname()[1]}", flush=True)
        server.run([listener])


if __name__ == "__main__":
    serve() if sys.argv[1:] == ["serve"] else print(run())
