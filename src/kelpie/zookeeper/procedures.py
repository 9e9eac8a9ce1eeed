"""Several procedures that take turns, as the threads of Kafka's consumer do.

A procedure is a generator. It yields what it waits for: requests to ZooKeeper (whose answers it is sent), or
`Until` a condition holds or a time has come. No procedure is interrupted between two yields, so a lock is a
flag: wait until it is free, and take it. Conditions are looked at after every event.
"""

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any, TypeVar

from kelpie.model.time import Instant
from kelpie.zookeeper.requests import Answer, Request

Batch = tuple[Request, ...]
"""Requests that are carried out in order. Their answers come together."""

Answers = tuple[Answer, ...]


@dataclass(frozen=True, slots=True)
class Until:
    ready: Callable[[], bool] | None = None
    at: Instant | None = None


T = TypeVar("T")
Procedure = Generator[Batch | Until, Any, T]


@dataclass(slots=True)
class _Running:
    name: str
    procedure: Procedure[None]
    waits_for: Until | None = None
    token: int | None = None


class Procedures:
    def __init__(self, ask: Callable[[Batch], int]) -> None:
        """`ask` sends requests, and returns the token with which their answers come."""
        self._ask = ask
        self._running: list[_Running] = []

    def begin(self, name: str, procedure: Procedure[None]) -> None:
        """It runs when `run` is called next. A procedure of the same name must have ended."""
        assert not self.is_running(name), name
        self._running.append(_Running(name, procedure, Until(lambda: True)))

    def is_running(self, name: str) -> bool:
        return any(running.name == name for running in self._running)

    def answered(self, token: int, answers: Answers) -> None:
        for running in self._running:
            if running.token == token:
                running.token = None
                self._step(running, answers)
                return

    def interrupt(self, name: str, reason: Exception) -> None:
        """Raise the reason where the procedure waits, if it runs."""
        for running in list(self._running):
            if running.name == name:
                running.token = None
                try:
                    self._step(running, None, reason)
                except type(reason):
                    self._running.remove(running)

    def end(self) -> None:
        for running in self._running:
            running.procedure.close()
        self._running.clear()

    def run(self, now: Instant) -> None:
        """Everything that can go on goes on."""
        went_on = True
        while went_on:
            went_on = False
            for running in list(self._running):
                wait = running.waits_for
                if wait is None or running not in self._running:
                    continue
                if (wait.at is not None and now >= wait.at) or (wait.ready is not None and wait.ready()):
                    self._step(running, None)
                    went_on = True

    @property
    def wake_at(self) -> Instant | None:
        return min(
            (
                running.waits_for.at
                for running in self._running
                if running.waits_for is not None and running.waits_for.at is not None
            ),
            default=None,
        )

    def _step(self, running: _Running, value: Any, reason: Exception | None = None) -> None:
        running.waits_for = None
        procedure = running.procedure
        try:
            wanted = procedure.send(value) if reason is None else procedure.throw(reason)
            while wanted == ():
                wanted = procedure.send(())
        except StopIteration:
            self._running.remove(running)
            return
        if isinstance(wanted, Until):
            running.waits_for = wanted
        else:
            running.token = self._ask(wanted)
