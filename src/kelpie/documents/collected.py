"""`kelpie collect --json`: one line for each round."""

from kelpie.collect.collecting import Round
from kelpie.documents.declaring import TypedDict, document
from kelpie.model.time import iso_time


@document
class RoundDocument(TypedDict):
    """One round of kelpie collect; each is a line."""

    at: str
    cluster: str
    groups: int
    partitions: int
    unasked: int
    """How many things could not be asked."""
    bytes: int
    """Written; 0: nothing was."""
    seconds: float
    deleted: list[str]
    """Files that were removed to stay below --most-disk."""
    remarks: list[str]
    """What a person should know."""


def round_document(done: Round) -> RoundDocument:
    return {
        "at": iso_time(done.at),
        "cluster": done.cluster,
        "groups": done.groups,
        "partitions": done.partitions,
        "unasked": done.unasked,
        "bytes": done.size,
        "seconds": round(done.took_s, 3),
        "deleted": [str(file.path) for file in done.deleted],
        "remarks": list(done.words),
    }
