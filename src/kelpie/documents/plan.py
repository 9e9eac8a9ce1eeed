"""Plans of repairs, and what came of them: what `--json` of every command that repairs prints."""

from dataclasses import asdict
from typing import cast

from kelpie.documents.declaring import TypedDict, document
from kelpie.documents.mappings import (
    AmbiguousNode,
    LeakedNode,
    MissingNode,
    UnjudgedNode,
    UnmappableMember,
    WrongNode,
)
from kelpie.repair.applying import RepairResult
from kelpie.repair.plan import Plan


@document
class ManualStepData(TypedDict):
    """Something that a person does."""

    text: str
    lines: list[str]
    """To paste, where there are some."""


@document
class PlanStepData(TypedDict):
    does: str
    changes: str
    """What is different afterwards."""
    undo: ManualStepData


@document
class PlannedOffset(TypedDict, total=False):
    topic: str
    partition: int
    offset: int | None
    """null: the group gets none."""
    leader_epoch: int
    metadata: str
    before: int | None
    """Of reset and migrate-offsets: what is committed now. null: nothing."""
    note: str
    at: int | None
    """Of rehome: when it was committed, in milliseconds since 1970."""
    source: str
    sure: str
    """Of rehome: certain, likely or dated."""
    why: str


@document
class SkippedOffset(TypedDict):
    topic: str
    partition: int
    reason: str


@document
class LivingLogData(TypedDict):
    broker: int
    log_end: int
    """-1: not known."""
    failure: str | None


@document
class LostCommitData(TypedDict):
    group: str
    partition: str
    committed: int
    goes_back_to: int | None
    """null: the group would have no offset."""
    at: int | None
    """Milliseconds since 1970."""


@document
class PlannedElection(TypedDict):
    partition: str
    leader: int
    """The broker that would lead."""
    clean: bool
    log_end: int
    """-1: not known."""
    living_logs: list[LivingLogData]
    groups: list[str]
    """Those that live on the partition, if it is of the offsets topic."""
    records_lost: int
    commits_lost: list[LostCommitData]


@document
class PassedPartition(TypedDict):
    partition: str
    reason: str


@document
class ReassignedPartition(TypedDict):
    topic: str
    partition: int
    replicas: list[int]


@document
class Reassignment(TypedDict):
    """As kafka-reassign-partitions takes it."""

    version: int
    partitions: list[ReassignedPartition]


@document
class PlanDetails(TypedDict, total=False):
    """What is changed, in full. Which fields are there depends on the repair."""

    id: str
    """Of undo: the change that is undone."""
    group: str
    zookeeper_group: str
    partition: int
    """Of rehome: where the group lives now, in __consumer_offsets."""
    new_name: str
    new_partition: int
    coordinator: int | None
    done: bool
    """Of rehome: an earlier run has done it."""
    offsets: list[PlannedOffset]
    missed: list[SkippedOffset]
    unclean: bool
    elections: list[PlannedElection]
    passed: list[PassedPartition]
    reassignment: Reassignment
    before: Reassignment
    bytes_copied: int | None
    leaderless: list[int]
    changes: list[str]
    """Of mappings: nodes of ZooKeeper that are written or deleted."""
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


@document
class _PlanFields(TypedDict):
    id: str
    """Two plans with one id change the same, and found the same there: --apply --plan ID."""
    repair: str
    """The command."""
    title: str
    applicable: bool
    """Whether there is something to do, and nothing in the way."""
    steps: list[PlanStepData]
    seen: list[str]
    """Facts that led to this plan."""
    warnings: list[str]
    obstacles: list[str]
    """Why it cannot be applied now, and what would help."""
    afterwards: list[ManualStepData]
    instead: list[ManualStepData]
    """What a person has to do by hand, where the cluster is too old to do it on request."""
    details: PlanDetails
    applied: bool


@document
class PlanDocument(_PlanFields, total=False):
    """The plan of a repair; with --apply, also what came of it."""

    reports: list[str]
    """With --apply: one for each step that was done, in order."""
    failure: str | None
    """With --apply: why the next step was not done, or why none was."""


def plan_document(plan: Plan) -> PlanDocument:
    """Of a plan that was not applied."""
    return {
        "id": plan.id,
        "repair": plan.repair,
        "title": plan.title,
        "applicable": plan.applicable,
        "steps": cast("list[PlanStepData]", list(map(asdict, plan.steps))),
        "seen": list(plan.seen),
        "warnings": list(plan.warnings),
        "obstacles": list(plan.obstacles),
        "afterwards": cast("list[ManualStepData]", list(map(asdict, plan.afterwards))),
        "instead": cast("list[ManualStepData]", list(map(asdict, plan.instead))),
        "details": cast("PlanDetails", dict(plan.details)),
        "applied": False,
    }


def result_document(result: RepairResult) -> PlanDocument:
    return {
        **plan_document(result.plan),
        "applied": result.failure is None,
        "reports": list(result.reports),
        "failure": result.failure,
    }
