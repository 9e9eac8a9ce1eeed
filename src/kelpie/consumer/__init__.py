"""The client side of consumer groups, as machines without input or output.

    consumer = ConsumerMachine(config, addresses, draw=random.randrange, new_id=…)
    effects = consumer.poll(now)

`kelpie.client.consumer` drives it over real connections. From the outside in:

    consumer_machine.py     puts the parts together; every event is a method
    coordinator_lookup.py   finds the coordinator
    membership/             classic.py: JoinGroup, SyncGroup, heartbeats; eager, cooperative, static
                            consumer_group.py: KIP-848
    positions/              fetch_positions.py: committed offsets, reset policy, validation
    fetcher.py              records (completed_fetch.py reads them)
    offset_commits.py       commits, on demand and automatic
    metadata.py             leaders; broker_connections.py: which broker to ask
    pending_requests.py     requests without an answer, and how answers come in
    effects.py              what follows from an event
    steps.py                what was asked, answered and done, step by step

Each part says at its top what it follows and, in a table, what it does with each error.
"""

from kelpie.consumer.config import BadConfig, ConsumerConfig, GroupProtocol, IsolationLevel
from kelpie.consumer.consumer_machine import ConsumerMachine
from kelpie.consumer.effects import (
    BrokerNode,
    CommitFailed,
    ConsumedRecord,
    ConsumerClosed,
    Effects,
    Event,
    Failure,
    FailureKind,
    OffsetsCommitted,
    OutgoingRequest,
    PartitionsAssigned,
    PartitionsLost,
    PartitionsRevoked,
    Problem,
    ProblemKind,
    ProblemRaised,
    RecordsDelivered,
)
from kelpie.consumer.positions.reset_policy import EARLIEST, LATEST, NONE, ResetPolicy
from kelpie.consumer.steps import ConsumerStep, StepKind
from kelpie.questions.offset_commit import OffsetToCommit

__all__ = [
    "EARLIEST",
    "LATEST",
    "NONE",
    "BadConfig",
    "BrokerNode",
    "CommitFailed",
    "ConsumedRecord",
    "ConsumerClosed",
    "ConsumerConfig",
    "ConsumerMachine",
    "ConsumerStep",
    "Effects",
    "Event",
    "Failure",
    "FailureKind",
    "GroupProtocol",
    "IsolationLevel",
    "OffsetToCommit",
    "OffsetsCommitted",
    "OutgoingRequest",
    "PartitionsAssigned",
    "PartitionsLost",
    "PartitionsRevoked",
    "Problem",
    "ProblemKind",
    "ProblemRaised",
    "RecordsDelivered",
    "ResetPolicy",
    "StepKind",
]
