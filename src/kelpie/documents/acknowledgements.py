"""`kelpie ack --json`: what is acknowledged. `kelpie ack --import` reads it."""

from typing import Literal

from kelpie.documents.declaring import TypedDict, document


@document
class AcknowledgementData(TypedDict):
    group: str | None
    """A name or a pattern. null: what concerns the cluster as a whole."""
    code: str
    severity: Literal["notice", "warning", "critical"]
    """What is worse than this is told all the same."""
    until: int
    """Milliseconds since 1970."""
    by: str
    why: str
    at: int
    """When it was acknowledged, in milliseconds since 1970."""
    expires: str
    """`until` as ISO 8601; --import does not read it."""


@document
class AcknowledgementsDocument(TypedDict):
    """Findings that people know about."""

    version: Literal[1]
    clusters: dict[str, list[AcknowledgementData]]
    """By the cluster's name in the store."""
