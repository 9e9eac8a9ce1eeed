"""The settings of a ZooKeeper consumer. Names and defaults are those of Kafka 0.8.2, except where noted."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum


class Behaviour(StrEnum):
    FAITHFUL = "faithful"
    """What ZookeeperConsumerConnector of Kafka 0.8.2.2 does, with its faults."""
    RECOVERING = "recovering"
    """The same protocol, without the faults: a failure is told and mended."""


class BadConfig(ValueError):
    """A setting that is not allowed; the text says which one, and what is."""


_NOT_IN_PATHS = re.compile(r"[/\x00-\x1f\x7f-\x9f\ud800-\uf8ff\ufff0-\uffff]")
"""ZooKeeper's PathUtils refuses these; "/" separates names."""


def _is_node_name(name: str) -> bool:
    return name not in ("", ".", "..", "zookeeper") and not _NOT_IN_PATHS.search(name)


class PatternKind(StrEnum):
    """How a subscription names topics: the word in the consumer's node."""

    STATIC = "static"
    WHITE_LIST = "white_list"
    BLACK_LIST = "black_list"


@dataclass(frozen=True, slots=True)
class Subscription:
    """Threads per topic, or per pattern: a list of topics by regular expression has exactly one entry."""

    threads: Mapping[str, int]
    kind: PatternKind = PatternKind.STATIC

    def topics(self, existing: Iterable[str]) -> dict[str, int]:
        """Threads for each topic that is read. Kafka's own topic is left out, as by default in 0.8.2."""
        if self.kind is PatternKind.STATIC:
            return dict(self.threads)
        ((pattern, threads),) = self.threads.items()
        wanted = self.kind is PatternKind.WHITE_LIST
        matcher = re.compile(pattern)
        return {
            topic: threads
            for topic in existing
            if topic != "__consumer_offsets" and bool(matcher.fullmatch(topic)) == wanted
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class ZookeeperConsumerConfig:
    group_id: str
    subscription: Subscription
    behaviour: Behaviour = Behaviour.RECOVERING
    session_timeout_ms: int = 6_000
    """zookeeper.session.timeout.ms, as the server granted it."""
    rebalance_max_retries: int = 4
    """How often a rebalance is tried in all."""
    rebalance_backoff_ms: int = 2_000
    auto_commit_enable: bool = True
    auto_commit_interval_ms: int = 60_000
    recovery_backoff_ms: int = 1_000
    """Recovering only: the longest wait after a first failure; twice as long after each further one."""
    recovery_backoff_max_ms: int = 30_000

    def __post_init__(self) -> None:
        if not _is_node_name(self.group_id):
            raise BadConfig(
                f"group.id {self.group_id!r} cannot be the name of a node in ZooKeeper. Needed is a name "
                "without '/' and control characters, other than '.', '..' and 'zookeeper'."
            )
        if not self.subscription.threads:
            raise BadConfig("At least one topic is needed.")
        if min(self.subscription.threads.values()) < 1:
            raise BadConfig("A topic is read by 1 thread or more.")
        if self.subscription.kind is PatternKind.STATIC:
            for topic in self.subscription.threads:
                if not _is_node_name(topic):
                    raise BadConfig(f"{topic!r} is not the name of a topic.")
        else:
            if len(self.subscription.threads) != 1:
                raise BadConfig("A white list or a black list is one pattern.")
            try:
                re.compile(next(iter(self.subscription.threads)))
            except re.error as error:
                raise BadConfig(f"The pattern of topics cannot be read: {error}.") from None
        for setting in ("session_timeout_ms", "rebalance_max_retries", "auto_commit_interval_ms"):
            if getattr(self, setting) < 1:
                raise BadConfig(f"{setting.replace('_', '.')} must be 1 or more.")
        if self.rebalance_backoff_ms < 0:
            raise BadConfig("rebalance.backoff.ms must not be negative.")
