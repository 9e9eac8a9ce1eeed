"""Which brokers are alive: worked out of all that was seen, since nobody can be asked who knows.

Every witness says something of a broker at a time, and the newest word counts:

- The survey reached it: alive. It could not be reached: dead, unless a broker that was reached still lists
  it as alive. Then it may have died a moment ago (a controller takes 6 to 18 s to notice), or others reach it
  and we do not; so nobody knows, and the reason tells both. A broker that holds replicas and that no broker
  lists any more is dead.
- Logs: the controller fenced or unfenced it, it was started, it shut down.
- Outputs of tools (kafka-topics --describe). Kafka 0.9 goes on naming dead leaders, with full ISRs, so a name
  in there proves nothing. A living leader's ISR does: whoever is missing from the ISR of every partition that
  he shares with living leaders is dead. Living are those whom no leader misses, and those whom a living
  leader has in sync. Who leads a partition in which somebody living is in sync is alive as well: the
  controller would have replaced him.
- Such an output often has no time. It counts as the last word, unless logs tell of a broker that went, or
  came back, at a known time.

When in the end all brokers are gone and the last of them shut down in order, somebody ended the cluster, and
no incident is to be found in that: what counts is how it stood before. `now` is then that moment.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from kelpie.cluster import Outage
from kelpie.cluster.view import ONE_SURVEY_MS
from kelpie.model.names import TopicPartition
from kelpie.model.time import Instant
from kelpie.model.words import listed
from kelpie.observations import Broker, Event, EventKind, Observations, PartitionView

_END_OF_CLUSTER_MS = 60_000
"""Shutdowns that follow each other within this are one."""

_TOOL, _LOG, _SURVEY = range(3)
"""Of two words at the same time, the higher one counts."""

_DOWN = {EventKind.BROKER_FENCED, EventKind.BROKER_STOPPED}
_UP = {EventKind.BROKER_UNFENCED, EventKind.BROKER_STARTED}


@dataclass(frozen=True, slots=True)
class Liveness:
    brokers: dict[int, Broker]
    outages: dict[int, tuple[Outage, ...]]
    ended_at: Instant | None = None
    """When somebody shut the whole cluster down."""


class _Word(NamedTuple):
    at: Instant
    witness: int
    alive: bool | None
    text: str
    source: str
    orderly: bool = False


def liveness(
    observations: Observations, views: Mapping[TopicPartition, Sequence[PartitionView]], now: Instant
) -> Liveness:
    """`views`: the newest of each one who told."""
    newest = [view for told in views.values() for view in told]
    known = {broker.node_id for broker in observations.brokers}
    known |= {node for view in newest for node in (*view.replicas, view.leader) if node >= 0}
    words: defaultdict[int, list[_Word]] = defaultdict(list)
    for node, word in _by_logs(observations.events):
        if node in known:
            words[node].append(word)
    for node, word in _by_survey(observations, newest, known, now):
        words[node].append(word)
    undated: dict[int, _Word] = {}
    for node, told_at, word in _by_tools(newest):
        if told_at is not None:
            words[node].append(word)
        else:
            undated[node] = word
    ended_at = _end_of_cluster(known, words, undated)
    brokers, outages = {}, {}
    rows = _newest_rows(observations.brokers)
    for node in sorted(known):
        said = sorted(words[node])
        if ended_at is not None:
            said = [word for word in said if word.at < ended_at]
        verdict = _verdict(said, undated.get(node))
        row = rows.get(node) or Broker(node)
        brokers[node] = replace(
            row,
            alive=verdict.alive if verdict else None,
            reason=_reason(verdict),
            at=(verdict.at or None) if verdict else row.at,
            source=(verdict.source if verdict else "") or row.source,
        )
        away = tuple(_outages(node, said, undated.get(node)))
        if away:
            outages[node] = away
    return Liveness(brokers, outages, ended_at)


def _verdict(said: Sequence[_Word], undated: _Word | None) -> _Word | None:
    """The newest word; one without a time is the last, unless logs tell of a going or a coming back."""
    if undated is None or not said:
        return said[-1] if said else undated
    went_before = any(word.alive is False for word in said)
    return said[-1] if went_before else undated


def _reason(word: _Word | None) -> str:
    if word is None:
        return "nothing tells"
    return word.text if not word.alive else ""


def _outages(node: int, said: Sequence[_Word], undated: _Word | None) -> Iterator[Outage]:
    away: Outage | None = None
    alive_at: Instant | None = None
    for word in said:
        if word.alive is False:
            if away is None:
                away = Outage(node, _began(word), None, False, word.text, word.source, word.at, alive_at)
            away = replace(away, orderly=away.orderly or word.orderly)
        elif word.alive:
            alive_at = word.at
            if away is not None:
                yield replace(away, until=word.at)
                away = None
    if away is not None:
        yield away
    elif undated is not None and undated.alive is False and _verdict(said, undated) is undated:
        yield Outage(node, None, None, False, undated.text, undated.source)


def _began(word: _Word) -> Instant | None:
    """A log is written when it happens; a look comes at any time after."""
    return word.at if word.witness == _LOG else None


def _by_logs(events: Iterable[Event]) -> Iterator[tuple[int, _Word]]:
    for event in events:
        if event.node is not None and event.at is not None and (event.kind in _DOWN or event.kind in _UP):
            orderly = event.kind is EventKind.BROKER_STOPPED
            yield event.node, _Word(event.at, _LOG, event.kind in _UP, event.text, event.source, orderly)


def _by_survey(
    observations: Observations, newest: Sequence[PartitionView], known: set[int], now: Instant
) -> Iterator[tuple[int, _Word]]:
    asked = [view for view in newest if view.told_by is not None]
    at = max((view.at for view in asked if view.at is not None), default=now)
    told: defaultdict[int, list[Broker]] = defaultdict(list)
    for row in observations.brokers:
        says_something = row.alive is not None or row.reason  # Else it tells where the broker is, no more.
        if says_something and (not asked or (row.at is not None and row.at >= at - ONE_SURVEY_MS)):
            told[row.node_id].append(row)
    for node, rows in told.items():
        last = max((row.at for row in rows if row.at is not None), default=now)
        latest = [row for row in rows if row.at is None or row.at >= last - ONE_SURVEY_MS]
        if any(row.alive for row in latest):
            row = next(row for row in latest if row.alive)
            yield node, _Word(last, _SURVEY, True, row.reason, row.source)
        elif any(row.alive is False for row in latest):
            row = next(row for row in latest if row.alive is False)
            listing = sorted({row.source for row in latest if row.alive is None and row.source})
            text = row.reason
            if listing:
                text = f"{text.rstrip('.')}; yet listed as alive by {listed(listing)}"
            yield node, _Word(last, _SURVEY, None if listing else False, text, row.source)
    if not asked:
        return
    tellers = sorted({view.told_by for view in asked if view.told_by is not None})
    for node in known - told.keys() - set(tellers):
        noun = "broker" if len(tellers) == 1 else "brokers"
        who = f"{noun} {listed(tellers)}"
        yield node, _Word(at, _SURVEY, False, f"no longer listed by {who}", who)


def _by_tools(newest: Sequence[PartitionView]) -> Iterator[tuple[int, Instant | None, _Word]]:
    rows = [view for view in newest if view.told_by is None]
    if not rows:
        return
    at = max((view.at for view in rows if view.at is not None), default=None)
    living, dead = who_lives(rows)
    for node in living:
        yield node, at, _Word(at or 0, _TOOL, True, "", _a_source(rows, node))
    for node, text in dead.items():
        yield node, at, _Word(at or 0, _TOOL, False, text, _a_source(rows, node))


def who_lives(rows: Sequence[PartitionView]) -> tuple[set[int], dict[int, str]]:
    """The living, and the dead with the reason, as far as one description of partitions tells."""
    led = [row for row in rows if row.leader >= 0]
    leaders = {row.leader for row in led}
    living = _beyond_doubt(led, leaders)
    while True:
        vouched = {node for row in led if row.leader in living for node in row.in_sync}
        # A dead leader would have been replaced by any of the living that are in sync.
        leading = {row.leader for row in led if living & (set(row.in_sync) - {row.leader})}
        if vouched | leading <= living:
            break
        living |= vouched | leading
    dead = {}
    for node in {node for row in rows for node in row.replicas} - living:
        misses = sum(node in row.replicas for row in led if row.leader in living)
        leaderless = sum(node in row.replicas for row in rows if row.leader < 0)
        if misses:
            dead[node] = (
                f"it is in sync in none of the {misses} partitions that it shares with living leaders"
                if misses > 1
                else "it is not in sync in the one partition that it shares with a living leader"
            )
        elif leaderless and node not in leaders:
            dead[node] = f"all {leaderless} partitions that it has replicas of are without a leader"
    return living, dead


def _beyond_doubt(led: Sequence[PartitionView], leaders: set[int]) -> set[int]:
    """Leaders whom no leader misses; else those who took over from somebody; else those in sync elsewhere."""
    missed = {node for row in led for node in row.replicas if node not in row.in_sync and node != row.leader}
    heirs = {row.leader for row in led if row.replicas[0] not in row.in_sync}
    in_sync = {node for row in led for node in row.in_sync if node != row.leader}
    return leaders - missed or leaders & heirs or leaders & in_sync or leaders


def _a_source(rows: Sequence[PartitionView], node: int) -> str:
    source = next((row.source for row in rows if node in row.replicas), "")
    return source.rpartition(":")[0] or source  # Without the line: it takes all of them to see it.


def _end_of_cluster(
    known: set[int], words: Mapping[int, list[_Word]], undated: Mapping[int, _Word]
) -> Instant | None:
    """When the shutdown began that left nobody; None if somebody is left, or if the last one crashed."""
    stops = []
    for node in known:
        said = sorted(words.get(node, ()))
        last = _verdict(said, undated.get(node))
        if said and said[-1].alive is False and any(word.orderly for word in _last_outage(said)):
            stops.append(min(word.at for word in _last_outage(said)))
        elif last is None or last.alive is not False:
            return None
    began = None
    for at in sorted(stops, reverse=True):
        if began is not None and at < began - _END_OF_CLUSTER_MS:
            break
        began = at
    return began


def _last_outage(said: Sequence[_Word]) -> list[_Word]:
    last_up = max((at for at, word in enumerate(said) if word.alive), default=-1)
    return [word for word in said[last_up + 1 :] if word.alive is False]


def _newest_rows(rows: Iterable[Broker]) -> dict[int, Broker]:
    """Host and port as told last; what a later row leaves empty is kept."""
    found: dict[int, Broker] = {}
    for row in sorted(rows, key=lambda row: row.at or 0):
        before = found.get(row.node_id)
        found[row.node_id] = row if before is None else _filled(row, before)
    return found


def _filled(row: Broker, before: Broker) -> Broker:
    return replace(
        row,
        host=row.host or before.host,
        port=row.port if row.host else before.port,
        rack=row.rack or before.rack,
        release=row.release or before.release,
    )
