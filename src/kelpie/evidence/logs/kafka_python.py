"""What kafka-python writes: 1.4 to 2.0, and 2.1 to 3.x where the words changed.

Much of it is the Java consumer's of 0.10, word for word: those rows are in `java_client`. A node that
coordinates is called "coordinator-2" there.
"""

from collections.abc import Sequence
from dataclasses import replace

from kelpie.evidence.logs.matching import Meaning, Message
from kelpie.evidence.logs.templates import read_templates
from kelpie.observations import EventKind as Kind

_REQUESTS = {
    "OffsetCommitRequest": Kind.COMMIT_FAILED,
    "HeartbeatRequest": Kind.HEARTBEAT_FAILED,
    "FindCoordinatorRequest": Kind.LOOKUP_FAILED,
    "GroupCoordinatorRequest": Kind.LOOKUP_FAILED,
}


def _unsent(meaning: Meaning, _: Message) -> Sequence[Meaning]:
    kind = _REQUESTS.get(meaning.details.get("request", "").partition("_")[0])
    return [] if kind is None else [replace(meaning, kind=kind)]


def _unless_closing(meaning: Meaning, _: Message) -> Sequence[Meaning]:
    """A consumer that is closed cancels its loop: that is no failure."""
    return [] if meaning.fields.get("reason", "") in ("", "Cancelled") else [meaning]


PATTERNS = read_templates("kafka_python", (_unless_closing, _unsent))[""]
