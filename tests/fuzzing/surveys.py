"""Whole surveys of clusters whose brokers lie: there is always an answer, and it takes bounded time and work.

    python -m tests.fuzzing.surveys 200000

A run draws a `Liar`, surveys its cluster on a virtual clock, and holds the survey to its promise.
"""

import asyncio
import signal
import sys
from collections.abc import Callable, Coroutine
from contextlib import suppress
from random import Random
from typing import Any
from unittest import mock

from kelpie.client.address import Address
from kelpie.client.admin.admin import Admin
from kelpie.client.client_errors import ClientError
from kelpie.client.connection import Counters
from kelpie.client.history import read_history
from kelpie.client.nodes import Nodes
from kelpie.client.sasl import exchange
from kelpie.client.security import PLAINTEXT, Protocol, Sasl, Secret, Security, TokenSource
from kelpie.client.settings import Settings
from kelpie.client.survey import SurveyOptions, survey
from kelpie.doctor.cases import build
from kelpie.doctor.diagnosis import diagnose_all
from kelpie.doctor.rendering import json as as_json
from kelpie.doctor.rendering import terminal
from kelpie.lab.virtual_time import VirtualLoop
from kelpie.model.names import TopicPartition
from kelpie.observations import Observations
from kelpie.observations.encoding import dumps, rows_of
from tests.fuzzing.mutation import peak_mib, run_seeds
from tests.fuzzing.surveys_network import Liar
from tests.fuzzing.surveys_truth import GROUPS

NOW = 1_700_000_100_000
MOST_VIRTUAL_S = 900.0
MOST_REQUESTS = 3000
MOST_CONNECTIONS = 600
MOST_MIB = 256
MOST_CPU_S = 60.0
"""A survey takes some milliseconds. One that takes so long does not end."""
_BOOTSTRAP = (Address("host1", 9091), Address("host2", 9092))


class HungSurvey(BaseException):
    """No code under test may catch it."""


def survey_a_liar(chance: Random) -> None:
    """One run. Raises AssertionError, or what the survey raised."""
    liar = Liar.drawn(chance)
    with (
        mock.patch.object(exchange, "in_background", _at_once),
        asyncio.Runner(loop_factory=VirtualLoop) as runner,
    ):
        loop = runner.get_loop()
        complaints: list[dict[str, Any]] = []
        loop.set_exception_handler(lambda _, context: complaints.append(context))
        runner.run(_survey(liar, chance))
        assert not complaints, complaints
        assert loop.time() < MOST_VIRTUAL_S, f"{loop.time():.0f} s, by the virtual clock"


async def _survey(liar: Liar, chance: Random) -> None:
    settings = Settings(_BOOTSTRAP, security=_security(liar), network=liar)
    counters = Counters()
    options = SurveyOptions(sizes=chance.random() < 0.3, look_back_s=(60,))
    known = ("alpha", "long-gone")
    try:
        nodes = await Nodes.open(settings, counters=counters)
    except ClientError:
        nodes = None
    if nodes is not None:
        async with nodes:
            seen = await survey(nodes, known=known, options=options, now=lambda: NOW)
            if chance.random() < 0.3:
                seen.add(await read_history(nodes, seen, 64 * 1024))
            if chance.random() < 0.2:
                with suppress(ClientError):
                    await _administer(Admin(nodes, clock=lambda: NOW), chance)
        _check(seen, chance)
    assert counters.requests <= MOST_REQUESTS, counters
    assert counters.connections <= MOST_CONNECTIONS, counters
    others = asyncio.all_tasks() - {asyncio.current_task()}
    assert not others, others


def _security(liar: Liar) -> Security:
    if not liar.mechanism:
        return PLAINTEXT
    sasl = Sasl(liar.mechanism, "me", Secret("secret"), TokenSource(token=Secret("token")))
    return Security(Protocol.SASL_PLAINTEXT, sasl=sasl)


async def _at_once(call: Callable[[], Any]) -> Any:
    """A virtual clock does not wait for threads."""
    return call()


async def _administer(admin: Admin, chance: Random) -> None:
    """Some questions of the admin client; what it raises is a `ClientError`."""
    partitions = [TopicPartition("orders", 0), TopicPartition("payments", 0)]
    questions: list[Callable[[], Coroutine[Any, Any, Any]]] = [
        admin.brokers,
        admin.topics,
        admin.settings,
        admin.list_groups,
        admin.describe_all_groups,
        admin.reassignments,
        lambda: admin.topics(["orders"]),
        lambda: admin.coordinators(GROUPS),
        lambda: admin.describe_groups(GROUPS),
        lambda: admin.committed(GROUPS),
        lambda: admin.log_ends(partitions),
        lambda: admin.log_sizes(partitions),
        lambda: admin.offsets_at(dict.fromkeys(partitions, NOW)),
        lambda: admin.open_transactions(partitions),
    ]
    for question in chance.sample(questions, 3):
        await question()


def _check(seen: Observations, chance: Random) -> None:
    """Sometimes: what was seen can be written down, judged and shown."""
    if chance.random() < 0.3:
        for _, row in rows_of(seen):
            dumps(row).encode()
    if chance.random() < 0.1:
        judge(seen)


def judge(seen: Observations) -> str:
    """The diagnosis as JSON; it can be shown to people, too."""
    cluster, cases = build(seen, now=NOW, bootstrap="host1:9091")
    diagnosis = diagnose_all(cluster, cases)
    terminal.render(diagnosis).encode()
    shown = as_json.render(diagnosis)
    shown.encode()
    return shown


def fuzz_surveys(count: int) -> None:
    """So many runs. Raises what a run raises, with its seed; AssertionError if they took too much memory."""
    before = peak_mib()
    was = signal.signal(signal.SIGPROF, _hung)
    try:
        run_seeds(_limited, count, every=10_000)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, was)
    assert peak_mib() - before < MOST_MIB, f"{peak_mib() - before:.0f} MiB more than before"


def _limited(chance: Random) -> None:
    signal.setitimer(signal.ITIMER_PROF, MOST_CPU_S)
    survey_a_liar(chance)


def _hung(*_: object) -> None:
    raise HungSurvey(f"one survey has taken {MOST_CPU_S:g} s of CPU time")


if __name__ == "__main__":
    fuzz_surveys(int(sys.argv[1]))
