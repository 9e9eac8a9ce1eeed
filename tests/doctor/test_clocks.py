"""A clock here that is 90 s fast or slow: on the lab, whose releases tell more or less, and on real Kafka."""

import asyncio
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer

from kelpie.client.settings import Settings
from kelpie.client.survey import wall_clock
from kelpie.doctor.diagnosis import Diagnosis
from kelpie.doctor.finding import Severity
from kelpie.examination import Examination
from kelpie.lab import virtual_time
from kelpie.lab.scenarios import Environment, Stage
from kelpie.lab.scenarios.group_pair import AFFECTED, HEALTHY, GroupPair
from kelpie.real.cluster import RealCluster
from kelpie.store import Store

_90_S = 90_000


def _found(diagnosis: Diagnosis) -> set[tuple[str, str | None]]:
    return {
        (finding.code, finding.group)
        for finding in diagnosis.findings
        if finding.severity >= Severity.WARNING or finding.code in ("KLP309", "KLP310", "KLP316")
    }


@pytest.mark.parametrize("persona", ["4.3", "2.8"])
@pytest.mark.parametrize("fast_ms", [_90_S, -_90_S])
def test_a_busy_group_is_never_stopped_and_a_stopped_one_is_found(
    persona: str, fast_ms: int, tmp_path: Path
) -> None:
    """4.3 tells the controllers' clock; of 2.8 the looks before show the difference, or commits to come."""
    store = Store(tmp_path)
    seen: list[set[tuple[str, str | None]]] = []

    async def play() -> None:
        environment = Environment.virtual()
        async with Stage(persona, lambda _: None, environment=environment, logs=tmp_path / "logs") as stage:
            groups = await GroupPair.start(stage, pace_s=0.5)

            async def look() -> None:
                settings = stage.settings(groups.cluster, "kelpie")
                clock = environment.now_ms
                examination = Examination(settings, store=store, clock=lambda: clock() + fast_ms)
                seen.append(_found((await examination.examine()).diagnosis))

            await asyncio.sleep(10)
            for _ in range(3):
                await look()
                await asyncio.sleep(4)
            await groups.affected.close()
            await asyncio.sleep(25)
            await look()

    virtual_time.run(play())
    *before, after = seen
    for codes in before:
        assert {code for code, _ in codes} <= {"KLP316"}, "nobody has stopped"
    assert ("KLP316", None) in before[-1]
    assert ("KLP310", AFFECTED) in after
    assert not any(group == HEALTHY for _, group in after)


@pytest.mark.real
def test_a_busy_group_of_real_kafka(real_kafka: Callable[..., RealCluster]) -> None:
    """With the clock here 90 s fast and slow: the difference is told, and the group is well."""
    servers = real_kafka("4.3.1").bootstrap_servers
    over = threading.Event()
    committed = threading.Event()

    def write() -> None:
        producer = Producer({"bootstrap.servers": servers})
        while not over.is_set():
            producer.produce("clocks", b"x")
            producer.poll(0)
            over.wait(0.02)
        producer.flush(5)

    def read() -> None:
        consumer = Consumer(
            {
                "bootstrap.servers": servers,
                "group.id": "clocks-busy",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
            }
        )
        consumer.subscribe(["clocks"])
        try:
            while not over.is_set():
                messages = consumer.consume(10, 0.2)
                if any(message.error() is None for message in messages):
                    consumer.commit(asynchronous=False)
                    committed.set()
        finally:
            consumer.close()

    threads = [threading.Thread(target=play, daemon=True) for play in (write, read)]
    for thread in threads:
        thread.start()
    try:
        assert committed.wait(60)
        time.sleep(1)
        for fast_ms in (_90_S, -_90_S):

            def clock(fast_ms: int = fast_ms) -> int:
                return wall_clock() + fast_ms

            examination = Examination(Settings.of(servers), groups=["clocks-busy"], clock=clock)
            diagnosis = asyncio.run(examination.examine()).diagnosis
            assert _found(diagnosis) == {("KLP316", None)}, [
                finding.summary for finding in diagnosis.findings
            ]
            (told,) = [finding.summary for finding in diagnosis.findings if finding.code == "KLP316"]
            assert ("ahead of" if fast_ms > 0 else "behind") in told
    finally:
        over.set()
        for thread in threads:
            thread.join(20)
