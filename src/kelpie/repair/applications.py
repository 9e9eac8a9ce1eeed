"""What kind of application uses a group, as far as its traces tell; some are hurt by what suits others.

- Kafka Streams derives the names of its state's topics from the group id (application.id). Under another id
  it begins with empty state.
- Applications that assign partitions themselves commit without being members (Spark, Flink, assign()). The
  coordinator cannot guard them: their next commit overwrites what a repair has committed.
- Share groups have no committed offsets. Their positions are elsewhere, and are set in another way.
"""

from collections.abc import Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass

from kelpie.client.admin.admin import Admin
from kelpie.client.client_errors import ClientError
from kelpie.client.history import read_history
from kelpie.client.nodes import Nodes
from kelpie.cluster import ClusterView, commands
from kelpie.model.time import Instant
from kelpie.model.words import duration, first_of
from kelpie.observations import Commit, GroupState, Observations
from kelpie.repair.change_records import Offsets, OffsetsChange, records
from kelpie.repair.claims import place_in_copy
from kelpie.repair.plan import CannotRepair

SHARE, STREAMS = "share", "streams"
_STREAM = "stream"
"""The assignor of Kafka Streams, and the protocol type of its earliest releases."""
_STATE_TOPICS = ("-changelog", "-repartition")
_RECENT_MS = 60 * 60 * 1000
_HISTORY_BYTES = 2 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class GroupUse:
    """How a group is used. Empty: nothing shows it."""

    streams: tuple[str, ...] = ()
    """Why it is taken for Kafka Streams."""
    commits_alone: str = ""
    """Why something is taken to commit without being a member."""


UNKNOWN_USE = GroupUse()


def refuse_share_group(cluster: ClusterView, state: GroupState | None, doing: str) -> None:
    """Raises CannotRepair."""
    if state is None or state.kind != SHARE:
        return
    words = ("--reset-offsets", "--group", state.group, "--all-topics", "--to-earliest", "--dry-run")
    line = commands.kafka("kafka-share-groups", cluster, *words)
    raise CannotRepair(
        f"{state.group} is a share group: it has no committed offsets that could be {doing}. Brokers keep "
        f"where it starts, and Kafka's own tool sets that, once its members are stopped: {line}"
    )


async def use_of(nodes: Nodes, group: str, state: GroupState | None, now: Instant) -> GroupUse:
    """What the group's kind, its history and the topics of the cluster show. Asks; never fails."""
    topics: set[str] = set()
    history = Observations()
    with suppress(ClientError):
        topics = {view.topic for view in await Admin(nodes).topics(None)}
    with suppress(ClientError):
        history = await read_history(nodes, None, _HISTORY_BYTES, groups=[group])
    known = [row for row in records() if (row.cluster, row.subject) == (nodes.cluster_id or "", group)]
    ours = known[-1].change if known else None
    return GroupUse(
        tuple(streams_signs(group, state, history, topics)),
        commits_alone(group, state, history, now, ours.after if isinstance(ours, OffsetsChange) else {}),
    )


def streams_signs(
    group: str, state: GroupState | None, history: Observations, topics: Collection[str]
) -> list[str]:
    signs = []
    if state is not None and state.kind == STREAMS:
        signs.append("it uses the protocol of Kafka Streams (KIP-1071)")
    generations = [row for row in history.generations if row.group == group]
    spoken = [(row.protocol_type, row.protocol) for row in generations]
    if state is not None:
        spoken.append((state.protocol_type, state.protocol))
    if any(_STREAM in pair for pair in spoken):
        signs.append('its members use the assignor "stream"')
    own = sorted(name for name in topics if name.startswith(f"{group}-") and name.endswith(_STATE_TOPICS))
    if own:
        signs.append(
            f"there {'is a topic' if len(own) == 1 else 'are topics'} of its state: {first_of(own, 3)}"
        )
    return signs


def commits_alone(
    group: str, state: GroupState | None, history: Observations, now: Instant, ours: Offsets | None = None
) -> str:
    """Whether the group's newest commit came while it had no members, and not long ago.

    The order of records in the offsets topic says what came after what, not a clock. `ours`: what Kelpie
    itself has committed for the group last; that is no sign of an application.
    """
    if state is None or state.members:
        return ""
    commits = [row for row in history.commits if row.group == group and not row.removed]
    if not commits:
        return ""
    last = max(commits, key=_place)
    by_us = (ours or {}).get(last.name)
    if by_us is not None and by_us.offset == last.offset:
        return ""
    emptied = [row for row in history.generations if row.group == group]
    newest = max(emptied, key=lambda row: place_in_copy(row.source)[1], default=None)
    if newest is None and state.protocol_type:
        return ""  # It had members once, before what was read.
    if newest is not None and (newest.members or place_in_copy(newest.source)[1] > _place(last)):
        return ""
    if last.at is None or now - last.at > _RECENT_MS:
        return ""
    ago = duration(max(now - last.at, 0))
    return f"its last commit came without any member, {ago} ago by the brokers' clock"


def _place(commit: Commit) -> int:
    return place_in_copy(commit.source)[1]


def reset_warnings(group: str, use: GroupUse) -> Iterable[str]:
    """What a person must know before offsets of the group are set."""
    if use.streams:
        yield (
            f"{_looks_like_streams(group, use)} Its state stays as it is: records that it reads again are "
            "counted again. Kafka's kafka-streams-application-reset clears both."
        )
    yield from _overwritten(group, use)


def move_warnings(group: str, name: str, use: GroupUse) -> Iterable[str]:
    """What a person must know before the group gets another name."""
    if use.streams:
        yield (
            f"{_looks_like_streams(group, use)} As {name} it makes new changelog and repartition topics and "
            f"begins with empty state; what {group}-…-changelog holds is not used. Its offsets alone do not "
            "bring it back."
        )
    yield from _overwritten(group, use)


def _looks_like_streams(group: str, use: GroupUse) -> str:
    return f"Group {group} looks like a Kafka Streams application: {'; '.join(use.streams)}."


def _overwritten(group: str, use: GroupUse) -> Iterable[str]:
    if use.commits_alone:
        yield (
            f"Something commits for group {group} without being a member ({use.commits_alone}): Spark, "
            "Flink, assign(), or a tool. Kafka cannot say whether it still runs, and its next commit "
            "overwrites these offsets. Stop it first. Some of these applications keep their place in a "
            "checkpoint of their own."
        )
