"""Which committed offsets are of an earlier topic of the same name. KLP304, KLP305 and KLP314 share it."""

from typing import NamedTuple

from kelpie.cluster.topics import Recreation
from kelpie.doctor.case import Case
from kelpie.doctor.finding import Evidence
from kelpie.doctor.position_words import evidence_of
from kelpie.model.time import Instant
from kelpie.observations import Commit, Committed, LogEnds, PartitionView, TopicView


class OldPosition(NamedTuple):
    """An offset that a group committed in a topic that is gone, while another one has its name now."""

    row: Committed
    proof: str
    """What shows it, as the end of a sentence."""
    evidence: tuple[Evidence, ...]
    since: Instant | None = None
    """By then, the new topic was there."""


def old_position(case: Case, row: Committed) -> OldPosition | None:
    """None: the offset is of the present topic, or nothing shows that it is not."""
    name, now = row.name, case.cluster.known_topics.id_of(row.topic)
    end = case.cluster.newest_end(name)
    history = case.commits.get(name)
    last = history[-1] if history else None
    if (
        row.leader_epoch <= 0
        and (end is None or row.offset <= end.latest)
        and (last is None or last.topic_id == now)
        and row.topic not in case.cluster.known_topics.recreations
    ):
        return None  # Nearly all offsets.
    return (
        _by_commit_id(case, row)
        or _by_epoch(case, row)
        or _by_recreation(case, row)
        or _by_earlier_commit(case, row)
    )


def newest_commit(case: Case, row: Committed) -> Commit | None:
    """The record of the offsets topic that the coordinator's answer comes from, if it was read."""
    history = case.commits.get(row.name, ())
    return history[-1] if history and history[-1].offset == row.offset else None


def _by_commit_id(case: Case, row: Committed) -> OldPosition | None:
    commit, now = newest_commit(case, row), case.cluster.known_topics.id_of(row.topic)
    if commit is None or not commit.topic_id or not now or commit.topic_id == now:
        return None
    view = case.cluster.known_topics.newest(row.topic)[-1]
    return OldPosition(
        row,
        f"it was committed for the topic with id {commit.topic_id}, and the id is now {now}",
        (
            Evidence.of(commit, f"{row.name}: committed {row.offset} for topic id {commit.topic_id}"),
            Evidence.of(view, f"topic {row.topic} has id {now}"),
        ),
    )


def _by_earlier_commit(case: Case, row: Committed) -> OldPosition | None:
    """An earlier commit was for another topic, and the offset lies beyond the end of the present one."""
    now, end = case.cluster.known_topics.id_of(row.topic), case.cluster.newest_end(row.name)
    if not now or end is None or row.offset <= end.latest:
        return None
    for commit in reversed(case.commits.get(row.name, ())):
        if commit.topic_id and commit.topic_id != now:
            text = f"{row.name}: committed {commit.offset} for topic id {commit.topic_id}"
            proof = f"an earlier commit was for the topic with id {commit.topic_id}, and the id is now {now}"
            return OldPosition(row, proof, (*evidence_of(row, end), Evidence.of(commit, text)))
    return None


def _by_epoch(case: Case, row: Committed) -> OldPosition | None:
    view, epoch = case.cluster.view(row.name), case.cluster.newest_epoch(row.name)
    if not 0 <= epoch < row.leader_epoch:
        return None
    seen = [Evidence.of(view, f"{row.name}: leader epoch {epoch}")] if view is not None else []
    return OldPosition(
        row,
        f"it was committed in leader epoch {row.leader_epoch}, and the epoch is now {epoch}: epochs only "
        "grow while a topic lives",
        (*evidence_of(row), *seen),
    )


def _by_recreation(case: Case, row: Committed) -> OldPosition | None:
    recreation = case.cluster.known_topics.recreations.get(row.topic)
    if recreation is None:
        return None
    end = case.cluster.newest_end(row.name)
    is_beyond = end is not None and row.offset > end.latest
    if not is_beyond and not _stood_there_before(case, row, recreation):
        return None
    proof = "an earlier look saw another topic of this name"
    evidence = (*evidence_of(row), *map(_seen, recreation.rows))
    return OldPosition(row, proof, evidence, recreation.since)


def _stood_there_before(case: Case, row: Committed, recreation: Recreation) -> bool:
    """Whether the group has not committed since the topic was created again."""
    commit = newest_commit(case, row)
    if commit is not None and commit.at is not None:
        return commit.at <= recreation.until
    looks = case.committed_over_time.get(row.name, ())
    before = [look for look in looks if look.at is not None and look.at <= recreation.until]
    since = [look for look in looks if look.at is not None and look.at > recreation.until]
    same = all(look.offset == row.offset for look in since)
    return bool(before) and before[-1].offset == row.offset and same


def _seen(row: TopicView | LogEnds | PartitionView) -> Evidence:
    if isinstance(row, TopicView):
        return Evidence.of(row, f"topic {row.topic} has id {row.topic_id}")
    return Evidence.of(row, f"{row.name}: leader epoch {row.leader_epoch}")
