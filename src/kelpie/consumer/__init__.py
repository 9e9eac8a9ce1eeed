"""The client side of consumer groups, as machines without input or output.

    consumer = Consumer(config, addresses, draw=random.randrange, new_id=…)      # consumer.py, config.py
    outcome = consumer.poll(now)                                                 # outcome.py

`kelpie.client.journey` drives it over real connections. From the outside in:

    consumer.py      puts the parts together; every event is a method
    lookup.py        finds the coordinator
    membership/      classic.py (join, sync, heartbeats, eager and cooperative, static), newer.py (KIP-848)
    positions/       update.py: where to begin: committed offsets, reset policy, validation, in Kafka's order
    fetching.py      records (unpacking.py reads them)
    committing.py    offsets, on demand and automatic
    metadata.py      leaders; nodes.py: which broker to ask
    desk.py          requests under way; machine.py: how their answers come in
    steps.py         what was asked, answered and done, step by step
    questions/       what is asked of brokers: a request in any version, and an answer without one

Each part says at its top what it follows and, in a table, what it does with each error.
"""

from kelpie.consumer.config import BadConfig, ConsumerConfig, GroupProtocol, IsolationLevel
from kelpie.consumer.consumer import Consumer
from kelpie.consumer.outcome import (
    Ask,
    Assigned,
    Closed,
    CommitRefused,
    Committed,
    ConsumedRecord,
    Delivered,
    Event,
    Failure,
    FailureKind,
    Lost,
    OffsetToCommit,
    Outcome,
    Place,
    Problem,
    ProblemKind,
    Raised,
    Revoked,
)
from kelpie.consumer.positions.policy import EARLIEST, LATEST, NONE, ResetPolicy
from kelpie.consumer.steps import Step, What

__all__ = [
    "EARLIEST",
    "LATEST",
    "NONE",
    "Ask",
    "Assigned",
    "BadConfig",
    "Closed",
    "CommitRefused",
    "Committed",
    "ConsumedRecord",
    "Consumer",
    "ConsumerConfig",
    "Delivered",
    "Event",
    "Failure",
    "FailureKind",
    "GroupProtocol",
    "IsolationLevel",
    "Lost",
    "OffsetToCommit",
    "Outcome",
    "Place",
    "Problem",
    "ProblemKind",
    "Raised",
    "ResetPolicy",
    "Revoked",
    "Step",
    "What",
]
