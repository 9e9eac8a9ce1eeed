"""`kelpie undo --list --json`: what Kelpie has changed in clusters."""

from kelpie.documents.declaring import TypedDict, document
from kelpie.repair.change_records import ChangeRecord


@document
class ChangeData(TypedDict):
    id: str
    """kelpie undo takes it."""
    cluster: str
    """Its id; empty for Kafka before 0.10.1, which has none."""
    bootstrap: str
    command: str
    subject: str
    """The group, or what else was changed."""
    at: int
    """Milliseconds since 1970."""
    what: str
    undoes: str | None
    """The id of the change that this one took back."""
    state: str
    """Whether it is undone; with -b, whether it can be."""
    file: str


ChangesDocument = list[ChangeData]


def change_data(record: ChangeRecord, state: str) -> ChangeData:
    return {
        "id": record.id,
        "cluster": record.cluster,
        "bootstrap": record.bootstrap,
        "command": record.command,
        "subject": record.subject,
        "at": record.at,
        "what": record.what,
        "undoes": record.undoes or None,
        "state": state,
        "file": str(record.file),
    }
