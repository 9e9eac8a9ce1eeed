"""The plan of elections: words and data, no questions.

Releases whose controller takes no request for an election hold one by hand, with settings and ZooKeeper.
"""

import json
import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from kelpie.cluster import ClusterView
from kelpie.model.names import TopicPartition
from kelpie.model.words import counted, listed, moment
from kelpie.observations import PartitionView
from kelpie.repair.losses import LostCommit
from kelpie.repair.plan import NOTHING_CHANGES, ManualStep, Plan, PlanTable, SkippedPartition, Step

_ZOOKEEPER = "ZOOKEEPER:2181"
_SETTING = "unclean.leader.election.enable"


@dataclass(frozen=True, slots=True)
class LivingLog:
    """The log of one living replica of a partition."""

    node: int
    end: int = -1
    """−1: it does not tell."""
    failure: str = ""

    def __str__(self) -> str:
        if self.failure:
            return f"broker {self.node}: not known ({self.failure})"
        return f"broker {self.node}: ends at {self.end}"


@dataclass(frozen=True, slots=True)
class Candidate:
    """The broker that would lead a partition, and what that loses."""

    view: PartitionView
    node: int
    clean: bool = True
    end: int = -1
    """Where its log ends; −1: it does not answer."""
    groups: tuple[str, ...] = ()
    """Those that live on the partition, if it is of the offsets topic."""
    commits: tuple[LostCommit, ...] = ()
    records: int = 0
    records_source: str = ""
    logs: tuple[LivingLog, ...] = ()
    """Of all living replicas."""

    @property
    def better(self) -> LivingLog | None:
        """A living log that has more than the one that would lead."""
        mine = next((log for log in self.logs if log.node == self.node), None)
        known = [log for log in self.logs if log.end >= 0]
        if self.clean or mine is None or mine.end < 0 or not known:
            return None
        best = max(known, key=lambda log: log.end)
        return best if best.end > mine.end else None

    @property
    def partition(self) -> TopicPartition:
        return self.view.name


def plan_elections(
    cluster: ClusterView,
    candidates: Sequence[Candidate],
    skipped: Sequence[SkippedPartition],
    *,
    unclean: bool,
    informed: bool,
    possible: bool,
) -> Plan:
    """`informed`: whether disks were read for losses; `possible`: whether the controller takes requests."""
    kind = "an unclean leader" if unclean else "the preferred leader"
    steps: tuple[Step, ...] = ()
    instead: tuple[ManualStep, ...] = ()
    obstacles = [] if candidates else [f"{skip}." for skip in skipped if not skip.is_well]
    if candidates and possible:
        steps = _steps(candidates, unclean=unclean)
    elif candidates:
        partitions = [candidate.partition for candidate in candidates]
        instead = _unclean_by_hand(partitions) if unclean else (_preferred_by_hand(partitions),)
        obstacles.append("This release of Kafka cannot be asked for it; it has to be done by hand, as above.")
    obstacles += [_better_words(candidate) for candidate in candidates if candidate.better is not None]
    lost = [loss for candidate in candidates for loss in candidate.commits]
    return Plan(
        "elect",
        f"Elect {kind} for {counted(len(candidates), 'partition')}."
        if candidates
        else f"There is no partition for which {kind} could be elected.",
        steps,
        seen=(
            *(_seen(candidate, cluster) for candidate in candidates),
            *(f"{skip}." for skip in skipped),
        ),
        tables=(_losses(lost),) if lost else (),
        warnings=tuple(_warnings(candidates, informed=informed)) if unclean else (),
        obstacles=tuple(obstacles),
        instead=instead,
        details={
            "unclean": unclean,
            "elections": [_data(candidate) for candidate in candidates],
            "passed": [{"partition": str(skip.partition), "reason": skip.reason} for skip in skipped],
        },
    )


def _steps(candidates: Sequence[Candidate], *, unclean: bool) -> tuple[Step, ...]:
    which = listed([candidate.partition for candidate in candidates[:5]])
    which += " …" if len(candidates) > 5 else ""
    if unclean and not all(candidate.clean for candidate in candidates):
        undo = ManualStep(
            "Nothing brings back what is lost: replicas that come back are cut to the new leader's log. Copy "
            "the disks of the dead brokers before they start again."
        )
    else:
        undo = ManualStep("Nothing undoes it, and nothing is lost: whoever led before stays a replica.")
    leaders = [f"{candidate.partition} → broker {candidate.node}" for candidate in candidates]
    return (
        Step(
            f"Ask the controller for {counted(len(candidates), 'election')}: {which}",
            f"Leaders: {', '.join(leaders)}.",
            undo,
        ),
        Step("Wait until the brokers know of it", "Nothing by itself.", NOTHING_CHANGES),
    )


def _seen(candidate: Candidate, cluster: ClusterView) -> str:
    view = candidate.view
    leader = "no leader" if view.leader < 0 else f"leader {view.leader}"
    text = (
        f"{candidate.partition} has {leader}, replicas {listed(view.replicas)}, in sync "
        f"{listed(view.in_sync) or 'none'}; {cluster.broker_name(candidate.node)} would lead it"
    )
    if candidate.end >= 0:
        text += f", whose log ends at {candidate.end}"
    if len(candidate.logs) > 1:
        text += f"; living copies: {'; '.join(map(str, candidate.logs))}"
    if candidate.groups:
        more = " …" if len(candidate.groups) > 8 else ""
        text += f"; groups on it: {', '.join(candidate.groups[:8])}{more}"
    return text + "."


def _better_words(candidate: Candidate) -> str:
    """The controller takes the first living replica in their order, however short its log is."""
    better, node = candidate.better, candidate.node
    assert better is not None
    loses = counted(better.end - candidate.end, "record")
    return (
        f"{candidate.partition}: the controller would elect broker {node}, the first living replica, whose "
        f"log ends at {candidate.end}. The log of broker {better.node} has more: it ends at {better.end}. "
        f"{loses} would be lost needlessly. Stop broker {node} while you elect, or put broker {better.node} "
        "first among the replicas (kafka-reassign-partitions), and run this again."
    )


def _warnings(candidates: Sequence[Candidate], *, informed: bool) -> list[str]:
    warnings = []
    for candidate in candidates:
        partition, broker = candidate.partition, f"broker {candidate.node}"
        if candidate.clean:
            warnings.append(f"{partition}: {broker} was in sync; nothing is lost with it.")
            continue
        if candidate.records:
            warnings.append(
                f"{partition}: {broker} lacks {counted(candidate.records, 'record')} that "
                f"{candidate.records_source} had; lost with it."
            )
        if candidate.commits:
            groups = listed(sorted({loss.group for loss in candidate.commits}))
            warnings.append(f"{partition}: the newest commits of {groups} are lost; they do that work again.")
        if not candidate.records and not candidate.commits:
            loss = (
                "Nothing newer is known than what it has."
                if informed
                else "What others had beyond its log is lost; their disks would tell: --evidence DIR …"
            )
            warnings.append(f"{partition}: {broker} was not in sync. {loss}")
    return warnings


def _losses(lost: Sequence[LostCommit]) -> PlanTable:
    rows = [
        (
            loss.group,
            str(loss.partition),
            str(loss.known.offset),
            "nothing" if loss.left is None else str(loss.left),
            "-" if loss.known.at is None else moment(loss.known.at).removesuffix(" UTC"),
        )
        for loss in lost
    ]
    return PlanTable(
        "Commits that would be lost (times in UTC)",
        ("GROUP", "PARTITION", "COMMITTED", "GOES BACK TO", "AT"),
        tuple(rows),
    )


def _data(candidate: Candidate) -> dict[str, object]:
    return {
        "partition": str(candidate.partition),
        "leader": candidate.node,
        "clean": candidate.clean,
        "log_end": candidate.end,
        "living_logs": [
            {
                "broker": log.node,
                "log_end": log.end,
                "failure": log.failure or None,
            }
            for log in candidate.logs
        ],
        "groups": list(candidate.groups),
        "records_lost": candidate.records,
        "commits_lost": [
            {
                "group": loss.group,
                "partition": str(loss.partition),
                "committed": loss.known.offset,
                "goes_back_to": loss.left,
                "at": loss.known.at,
            }
            for loss in candidate.commits
        ],
    }


def _preferred_by_hand(partitions: Sequence[TopicPartition]) -> ManualStep:
    """Kafka before 2.2."""
    elections = json.dumps(
        {"partitions": [{"topic": name.topic, "partition": name.partition} for name in partitions]}
    )
    return ManualStep(
        "Before Kafka 2.2 the controller takes such wishes from /admin/preferred_replica_election in "
        "ZooKeeper, where Kafka's own tool writes them:",
        (
            f"echo {shlex.quote(elections)} > elect.json",
            f"kafka-preferred-replica-election.sh --zookeeper {_ZOOKEEPER} --path-to-json-file elect.json",
        ),
    )


def _unclean_by_hand(partitions: Sequence[TopicPartition]) -> tuple[ManualStep, ...]:
    """Kafka before 2.4."""
    topics = sorted({partition.topic for partition in partitions})
    return (
        ManualStep(
            f"Allow unclean elections for the topic ({_SETTING}; before Kafka 0.11 they are allowed unless "
            "the brokers forbid them):",
            tuple(_configure(topic, "--add-config", f"{_SETTING}=true") for topic in topics),
        ),
        ManualStep(
            "If no leader appears within a minute, let the controller begin anew; it then looks at every "
            "partition:",
            (f"zookeeper-shell.sh {_ZOOKEEPER} delete /controller",),
        ),
        ManualStep(
            "When there is a leader, forbid them again:",
            tuple(_configure(topic, "--delete-config", _SETTING) for topic in topics),
        ),
    )


def _configure(topic: str, *change: str) -> str:
    words = ["--zookeeper", _ZOOKEEPER, "--alter", "--entity-type", "topics", "--entity-name", topic]
    return shlex.join(["kafka-configs.sh", *words, *change])
