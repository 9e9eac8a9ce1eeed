"""`kelpie names --json`."""

from typing import Literal

from kelpie.documents.declaring import TypedDict, document


@document
class NamesDocument(TypedDict):
    """Names of groups that live on a partition of __consumer_offsets."""

    version: Literal[1]
    partition: int
    partitions: int
    """How many __consumer_offsets has, or is taken to have."""
    names: list[str]
