"""Pages and /metrics of `kelpie serve` with 10,000 groups of ten partitions, asked by 50 readers at once.

The server is a process of its own, and shows one look at made-up rows. Each reader asks for the next page as
soon as it has the last one, over a connection that stays open: no person does, so real readers wait less. The
readers are a raw asyncio client; other clients would take longer than the server.

Then a real Kafka 4.3.1 has as many groups: what `kelpie serve` costs up to the end of its first look, against
the whole of `kelpie doctor`. They take turns.
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
from collections.abc import Callable
from typing import NamedTuple
from urllib.error import URLError
from urllib.parse import quote
from urllib.request import urlopen

from bench.many_groups import GROUPS, PARTITIONS, TOPIC, commit_all
from bench.measure import Ratio, Report, finished
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

ROUNDS = 3
READERS = 50
PAGES_EACH = 10
LIMIT_MS, METRICS_LIMIT_S, LOOK_LIMIT = 200, 1.0, 1.2
_LONGEST_LOOK_S = 300.0
_NOW = 1_800_000_000_000
_CLOCK = os.sysconf("SC_CLK_TCK")
_MOST_BYTES = 1_000_000


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


def _view(topic: str, number: int) -> PartitionView:
    return PartitionView(topic, number, 1 + number % 3, (1, 2, 3), (1, 2, 3), told_by=1, at=_NOW)


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
    doctor_s, look_s = _costs_of_a_look()
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
            ["kelpie serve, up to its first look", "–", "–", "–", f"{look_s * 1000:.0f}", "–"],
            ["kelpie doctor", "–", "–", "–", f"{doctor_s * 1000:.0f}", "–"],
        ],
        ratios=[
            Ratio("web-overview", LIMIT_MS / _percentile(overview.ms, 95), f"{LIMIT_MS} ms"),
            Ratio("web-group", LIMIT_MS / _percentile(group.ms, 95), f"{LIMIT_MS} ms"),
            Ratio("web-metrics", METRICS_LIMIT_S / first_cpu_s, f"{METRICS_LIMIT_S:g} s of CPU"),
            Ratio(
                "web-look", LOOK_LIMIT * doctor_s / look_s, f"{LOOK_LIMIT:g} times the CPU of kelpie doctor"
            ),
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


def _costs_of_a_look() -> tuple[float, float]:
    """CPU seconds of the doctor, and of the server up to the end of its first look: the least of each."""
    with (
        RealCluster("4.3.1", brokers=1, config={"offsets.topic.num.partitions": 50}) as cluster,
        tempfile.TemporaryDirectory(prefix="kelpie-bench-") as folder,
    ):
        asyncio.run(commit_all(cluster.bootstrap_servers))
        costs = [
            (_doctor(cluster.bootstrap_servers, folder), _first_look(cluster.bootstrap_servers, folder))
            for _ in range(ROUNDS)
        ]
    return min(doctor for doctor, _ in costs), min(look for _, look in costs)


def _doctor(bootstrap: str, folder: str) -> float:
    command = [sys.executable, "-m", "kelpie", "doctor", "-b", bootstrap, "--store", folder, "--json"]
    return finished(command).cpu_s


def _first_look(bootstrap: str, folder: str) -> float:
    (port,) = free(1)
    command = [sys.executable, "-m", "kelpie", "serve", "-b", f"main={bootstrap}", "--store", folder]
    command += ["--every", "3600", "--listen", f"127.0.0.1:{port}"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as server:
        try:
            deadline = time.monotonic() + _LONGEST_LOOK_S
            while not _has_looked(port):
                assert server.poll() is None, "kelpie serve has ended"
                assert time.monotonic() < deadline, f"no look within {_LONGEST_LOOK_S} s"
                time.sleep(0.2)
            return _cpu_s(server.pid)
        finally:
            server.kill()


def _has_looked(port: int) -> bool:
    """The list of clusters is a small page, and says when the last look began."""
    try:
        with urlopen(f"http://127.0.0.1:{port}/index.json", timeout=_LONGEST_LOOK_S) as answer:
            (cluster,) = json.loads(answer.read(_MOST_BYTES))["clusters"]
            return cluster["at"] is not None
    except URLError:
        return False  # Nobody listens there yet.


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
