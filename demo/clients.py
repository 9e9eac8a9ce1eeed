"""Real clients: consumers of librdkafka, kafka-python and aiokafka, each in a thread, and a producer.

Their logs go to files, as those of an application would: the doctor reads them, and the terminal stays free.
"""

import asyncio
import logging
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import Any

from aiokafka import AIOKafkaConsumer
from confluent_kafka import Consumer, Producer, TopicPartition
from kafka import KafkaConsumer

from demo.shop import CLICKS, ORDERS, PAYMENTS

_LAYOUT = logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s")
_LAYOUT.default_msec_format = "%s.%03d"
_COMMIT_EVERY_MS = 500
_POLL_S = 0.2
_STOP_S = 5.0
_AGAIN_S = 1.0
_ASK_S = 10.0
_BATCHES_A_SECOND = 5


def log_into(folder: Path) -> None:
    """What Python's clients log, into one file for all of them."""
    folder.mkdir(parents=True)
    logging.basicConfig(level=logging.INFO, handlers=[_file(folder / "python-clients.log")], force=True)


def logger_of(folder: Path, name: str) -> logging.Logger:
    """For a client of librdkafka, which would else write to standard error."""
    logger = logging.Logger(name, logging.INFO)
    logger.addHandler(_file(folder / f"{name}.log"))
    return logger


def _file(path: Path) -> logging.FileHandler:
    handler = logging.FileHandler(path, encoding="utf-8")
    handler.setFormatter(_LAYOUT)
    return handler


class Reader(ABC):
    """One consumer of a group. It reads and commits until it is stopped."""

    library: str

    def __init__(self, bootstrap: str, logs: Path, group: str, topic: str, **settings: Any) -> None:
        self.group, self.topic = group, topic
        self.read = 0
        self._bootstrap, self._logs, self._settings = bootstrap, logs, settings
        self._is_over = threading.Event()
        self._pause_s = 0.0
        self._thread = threading.Thread(target=self._run, name=group, daemon=True)

    @property
    def client_id(self) -> str:
        return f"{self.group}-1"

    def start(self) -> "Reader":
        self._thread.start()
        return self

    def stop(self) -> None:
        """It leaves its group, if that can be done: without a coordinator it cannot, and is left alone."""
        self._is_over.set()
        self._thread.join(_STOP_S)

    def ask_to_stop(self) -> None:
        self._is_over.set()

    def work_for(self, seconds: float) -> None:
        """The application is busy for so long before it polls again."""
        self._pause_s = seconds

    def _work(self) -> None:
        pause_s, self._pause_s = self._pause_s, 0.0
        if pause_s:
            self._is_over.wait(pause_s)

    def _run(self) -> None:
        """An error ends the consumer, not the application: it is logged, and a new consumer begins."""
        while not self._is_over.is_set():
            try:
                self._consume()
            except (Exception, asyncio.CancelledError):
                logging.getLogger("shop").exception("The consumer of %s failed.", self.group)
                self._is_over.wait(_AGAIN_S)

    @abstractmethod
    def _consume(self) -> None:
        """Read until it is over."""


class ConfluentReader(Reader):
    library = "confluent-kafka"

    def _opened(self) -> Consumer:
        return Consumer(
            {
                "bootstrap.servers": self._bootstrap,
                "group.id": self.group,
                "client.id": self.client_id,
                "auto.offset.reset": "earliest",
                "auto.commit.interval.ms": _COMMIT_EVERY_MS,
                **self._settings,
            },
            logger=logger_of(self._logs, self.group),
        )

    def _consume(self) -> None:
        consumer = self._opened()
        consumer.subscribe([self.topic])
        while not self._is_over.is_set():
            self.read += sum(message.error() is None for message in consumer.consume(500, _POLL_S))
            self._work()
        consumer.close()


class ChoosyReader(ConfluentReader):
    """Joins its group only if the broker that told it its coordinator suits: clients choose whom they ask."""

    def __init__(self, bootstrap: str, logs: Path, group: str, topic: str, suits: Callable[[], bool]) -> None:
        super().__init__(bootstrap, logs, group, topic)
        self._suits = suits

    def _opened(self) -> Consumer:
        while True:
            consumer = super()._opened()
            consumer.committed([TopicPartition(self.topic, 0)], timeout=_ASK_S)
            if self._suits() or self._is_over.is_set():
                return consumer
            consumer.close()


class KafkaPythonReader(Reader):
    library = "kafka-python"

    def _consume(self) -> None:
        consumer = KafkaConsumer(
            self.topic,
            bootstrap_servers=self._bootstrap,
            group_id=self.group,
            client_id=self.client_id,
            auto_offset_reset="earliest",
            auto_commit_interval_ms=_COMMIT_EVERY_MS,
            **self._settings,
        )
        while not self._is_over.is_set():
            batches = consumer.poll(timeout_ms=int(_POLL_S * 1000))
            self.read += sum(map(len, batches.values()))
            self._work()
        consumer.close(timeout_ms=int(_STOP_S * 1000))


class AiokafkaReader(Reader):
    library = "aiokafka"

    def _consume(self) -> None:
        asyncio.run(self._read())

    async def _read(self) -> None:
        consumer = AIOKafkaConsumer(
            self.topic,
            bootstrap_servers=self._bootstrap,
            group_id=self.group,
            client_id=self.client_id,
            auto_offset_reset="earliest",
            auto_commit_interval_ms=_COMMIT_EVERY_MS,
            **self._settings,
        )
        await consumer.start()
        while not self._is_over.is_set():
            batches = await consumer.getmany(timeout_ms=int(_POLL_S * 1000))
            self.read += sum(map(len, batches.values()))
        await consumer.stop()


class Writer:
    """An application that writes orders, payments and clicks, all the time."""

    def __init__(self, bootstrap: str, logs: Path) -> None:
        self.written = 0
        self._producer = Producer({"bootstrap.servers": bootstrap}, logger=logger_of(logs, "writer"))
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="writer", daemon=True)

    def start(self) -> "Writer":
        self._thread.start()
        return self

    def ask_to_stop(self) -> None:
        self._is_over.set()

    def _run(self) -> None:
        while not self._is_over.wait(1 / _BATCHES_A_SECOND):
            for topic, partition in [(ORDERS, 0), (ORDERS, 1), (ORDERS, 2), (PAYMENTS, 0), (CLICKS, 0)]:
                self._producer.produce(topic, f"{topic} {self.written}", partition=partition)
                self.written += 1
            self._producer.poll(0)
