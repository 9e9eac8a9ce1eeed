"""`kelpie mappings check --json`: what differs between KoP's mapping and the members of groups."""

from typing import cast

from kelpie.documents.declaring import TypedDict, document
from kelpie.repair.plan import Plan


@document
class MissingNode(TypedDict):
    path: str
    group: str
    members: list[str]


@document
class WrongNode(TypedDict):
    path: str
    group: str
    """The group of the members."""
    names: str | None
    """The group that the node names."""
    members: list[str]


@document
class AmbiguousNode(TypedDict):
    path: str
    groups: list[str]
    names: str | None
    shared_partitions: list[str]
    members: list[str]


@document
class LeakedNode(TypedDict):
    path: str
    group: str | None
    written: int
    """Milliseconds since 1970."""
    group_has_members: bool
    members_elsewhere: list[str]


@document
class UnmappableMember(TypedDict):
    group: str
    host: str
    client_id: str


@document
class UnjudgedNode(TypedDict):
    path: str
    group: str | None


@document
class MappingDifferences(TypedDict):
    members: int
    nodes: int
    correct: int
    missing: list[MissingNode]
    wrong: list[WrongNode]
    ambiguous: list[AmbiguousNode]
    leaked: list[LeakedNode]
    unmappable: list[UnmappableMember]
    not_judged: list[UnjudgedNode]
    not_asked: dict[str, str]
    """By broker or group: why it could not be asked."""


@document
class MappingsDocument(MappingDifferences):
    """KoP's mapping from client to group, compared with the members of all groups."""

    title: str
    differs: bool


def mappings_document(plan: Plan) -> MappingsDocument:
    return cast("MappingsDocument", {"title": plan.title, **plan.details})
