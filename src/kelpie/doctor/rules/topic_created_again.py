"""KLP314 topic-created-again

What it sees: a topic was deleted and created again under its name, and the
group's committed offset is one of the old topic.

Why it matters: the offset means nothing in the new topic. If it lies beyond the
end, a consumer that starts there is refused (OFFSET_OUT_OF_RANGE) and goes where
auto.offset.reset says; latest, the default, skips what the new topic holds. If
the new topic has grown past it, all records before it are skipped, and nobody
says so.

How it decides, for each committed offset: the commit carries the topic's id
(Kafka 4.1 and later), and the topic has another one now. Or the commit's leader
epoch is higher than the partition's: epochs only grow while a topic lives. Or an
earlier look saw another id (Kafka 2.8 and later) or a higher leader epoch, and the
offset lies beyond the end of the new log, or was committed before the last time
that the old topic was seen. Or an earlier commit was for another id, and the offset
lies beyond the end. Kafka removes the offsets of a deleted topic; a
consumer that has the partition may commit its old position again.

What it needs: Describe on the group and the topic, and one of these: commits with
leader epochs or topic ids (read access to __consumer_offsets), or an earlier look.
Without the committed offsets, or without any of these three, it is undetermined.

What to do: stop the group's consumers and set its offsets in this topic to the
beginning. Nothing of the new topic is lost then.

When it is wrong: a consumer that was set to the same offset in the new topic on
purpose. A topic that was created again before the first look, with commits that
carry neither an id nor a leader epoch, cannot be told from the old one.

Reproduce: kelpie lab run topic-created-again
"""

from kelpie.cluster import commands
from kelpie.doctor.case import Case
from kelpie.doctor.finding import ABSENT, Finding, Judgement, undetermined
from kelpie.doctor.position_words import MOST_EVIDENCE, reset, some
from kelpie.doctor.recreated_topics import OldPosition, newest_commit, old_position
from kelpie.doctor.rule import Presentation, Rule
from kelpie.doctor.signs import Sign
from kelpie.observations import Committed


def judge(case: Case) -> Judgement:
    old: list[OldPosition] = []
    unknown: list[Committed] = []
    for row in case.committed_rows:
        position = old_position(case, row)
        if position is not None:
            old.append(position)
        elif not _is_known_to_be_new(case, row):
            unknown.append(row)
    if old:
        return _found(case, old)
    if not case.offsets_are_known:
        return undetermined("its committed offsets")
    if unknown:
        topics = some(sorted({row.topic for row in unknown}))
        return undetermined(
            f"whether {topics} is the topic in which it committed: its commits carry neither a topic id nor "
            "a leader epoch, and no earlier look saw the topic"
        )
    return ABSENT


def _is_known_to_be_new(case: Case, row: Committed) -> bool:
    """Whether something was there to compare: an id or epoch of the commit, or an earlier look."""
    commit = newest_commit(case, row)
    if row.leader_epoch >= 0 or (commit is not None and (commit.leader_epoch >= 0 or commit.topic_id)):
        return True
    times = {view.at for view in case.cluster.known_topics.views.get(row.topic, ()) if view.topic_id}
    return len(times) > 1 or not case.cluster.known_topics.views


def _found(case: Case, old: list[OldPosition]) -> Finding:
    names = [position.row.name for position in old]
    topics = sorted({name.topic for name in names})
    wanted = [name for name in names if name not in case.reads.abandoned] or names
    first = old[0]
    more = f" The same holds for {some(names[1:])}." if len(names) > 1 else ""
    return RULE.finding(
        case.loss_severity(names),
        case.group,
        f"Group {case.group} stands in {some(topics)} at offsets of a topic that was deleted; another one of "
        f"this name was created since. Its offset in {first.row.name} is {first.row.offset}: {first.proof}."
        f"{more}",
        why="The offset means nothing in the new topic. A consumer that starts there skips what was written "
        "before it; or it is refused (OFFSET_OUT_OF_RANGE), and auto.offset.reset=latest skips all that is "
        "there.",
        evidence=[each for position in old for each in position.evidence][:MOST_EVIDENCE],
        remedies=[
            reset(
                case,
                "Stop the group's consumers and read the new topic from its beginning.",
                wanted,
                "--to-earliest",
            )
        ],
        cause=topics[0],
        partitions=names,
        since=first.since,
        check=commands.kafka("kafka-topics", case.cluster, "--describe", "--topic", topics[0]),
    )


RULE = Rule.of(
    __name__,
    judge,
    Presentation("stands in a topic that was created again", "stand in a topic that was created again"),
    asked_for=Sign.OFFSETS_UNKNOWN
    | Sign.ANOTHER_TOPIC
    | Sign.TOPIC_UNPROVEN
    | Sign.EPOCH_DIFFERS
    | Sign.BEYOND_END,
)
