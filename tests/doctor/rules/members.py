"""Real consumers (librdkafka), one process for a group; what they log goes to stderr.

    python -m tests.doctor.rules.members BOOTSTRAP GROUP '[{"name": "app-1", "topics": ["orders"]}, …]'

A consumer starts when the one before it has its assignment. "busy": seconds for which it does not poll once
it has an assignment; it commits after that, with a text of "metadata" characters. All ends with stdin.
"""

import contextlib
import json
import os
import sys
import threading
import time
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition


class Actor(threading.Thread):
    def __init__(self, bootstrap: str, group: str, plan: dict[str, Any], after: "Actor | None") -> None:
        super().__init__(daemon=True)
        self.plan, self.after = plan, after
        self.assigned = threading.Event()
        self._settings = {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "client.id": plan["name"],
            "session.timeout.ms": plan.get("session", 20_000),
            "heartbeat.interval.ms": 200,
            "max.poll.interval.ms": plan.get("limit", 60_000),
            "auto.offset.reset": "earliest",
            "partition.assignment.strategy": plan.get("assignor", "range"),
            "debug": "cgrp",
            "enable.auto.commit": False,
        }
        if "instance" in plan:
            self._settings["group.instance.id"] = plan["instance"]

    def run(self) -> None:
        if self.after is not None:
            self.after.assigned.wait(30)
        consumer = Consumer(self._settings)
        consumer.subscribe(self.plan["topics"], on_assign=lambda *_: self.assigned.set())
        busy = self.plan.get("busy", 0)
        while True:
            message = consumer.poll(0.05)
            error = None if message is None else message.error()
            if error is not None and error.code() == KafkaError._FATAL:
                return
            if busy and self.assigned.is_set():
                time.sleep(busy)
                self._commit(consumer)
                busy = 0

    def _commit(self, consumer: Consumer) -> None:
        text = "x" * self.plan.get("metadata", 0)
        offsets = [TopicPartition(self.plan["topics"][0], 0, 0, text)]
        with contextlib.suppress(KafkaException):
            consumer.commit(offsets=offsets, asynchronous=False)


def main(bootstrap: str, group: str, plans: str) -> None:
    before: Actor | None = None
    for plan in json.loads(plans):
        before = Actor(bootstrap, group, plan, before)
        before.start()
    sys.stdin.read()
    os._exit(0)


if __name__ == "__main__":
    main(*sys.argv[1:])
