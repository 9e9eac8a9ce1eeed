"""`kelpie offsets recover --json`: committed offsets that files and tables still know."""

from kelpie.documents.declaring import TypedDict, document
from kelpie.repair.claims import SettledOffset


@document
class RecoveredOffset(TypedDict):
    group: str
    topic: str
    partition: int
    offset: int
    commit_timestamp: int | None
    """When it was committed, in milliseconds since 1970."""
    source: str
    """The file, table or tool that has it."""
    certainty: str
    why: str
    """Why it is so certain, and no more."""


OffsetsDocument = list[RecoveredOffset]


def recovered_offset(group: str, offset: SettledOffset) -> RecoveredOffset:
    return {
        "group": group,
        "topic": offset.partition.topic,
        "partition": offset.partition.partition,
        "offset": offset.offset,
        "commit_timestamp": offset.claim.at,
        "source": offset.claim.source,
        "certainty": offset.certainty.word,
        "why": offset.why,
    }
