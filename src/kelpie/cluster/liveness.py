"""Which brokers are alive, and when each was away: concluded from all observations, as no broker knows.

Every witness reports on a broker at a time, and the newest report counts:

- A survey. A broker that it reached is alive. One that it could not reach is dead, unless a broker that it
  reached still lists that one as alive. Then it may have died a moment ago (a controller takes 6 to 18 s to
  notice), or other brokers reach it and we do not: whether it is alive is unknown, and the reason gives both
  facts. A broker that holds replicas and that no broker lists any more is dead. One without replicas that
  only earlier surveys know was taken out of the cluster.
- Earlier surveys, and the controllers' quorum. They show when a broker was away, or was last there, and
  never whether it is alive now.
- Logs: the controller fenced or unfenced the broker, it was started, it shut down.
- Outputs of tools (kafka-topics --describe). Kafka 0.9 goes on naming dead leaders, with full ISRs, so that a
  broker is named as leader proves nothing. The ISR of a living leader proves more. A broker is dead if it is
  missing from the ISR of every partition that it shares with living leaders. A leader is alive if it is
  missing from no ISR of another leader; so are the brokers in the ISR of a living leader, and the leader of
  a partition in whose ISR another living broker is: the controller would have replaced a dead leader.
- Such an output often has no time. It counts as the newest report, unless logs report that a broker went or
  came back at a known time.

If in the end all brokers are gone and the last of them shut down in order, then a person shut the cluster
down, which is no incident: the state before counts, and `now` is the beginning of that shutdown.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from kelpie.cluster.outages import Outage
from kelpie.cluster.view import ONE_SURVEY_MS
from kelpie.model.names import TopicPartition
from kelpie.model.time import Instant
from kelpie.model.words import listed, numbered
from kelpie.observations import BrokerView, Event, EventKind, Observations, PartitionView
from kelpie.observations.earlier import EARLIER_SURVEY
from kelpie.observations.presence import QUORUM

_END_OF_CLUSTER_MS = 60_000
"""Shutdowns that follow each other within this are one."""

_TOOL, _LOG, _SURVEY = range(3)
"""Of two reports at the same time, that of the higher witness counts."""

_OF_THE_PAST = (EARLIER_SURVEY, QUORUM)
"""Sources of rows that say when a broker was there or away, and nothing about now."""

_DOWN = {EventKind.BROKER_FENCED, EventKind.BROKER_STOPPED}
_UP = {EventKind.BROKER_UNFENCED, EventKind.BROKER_STARTED}


@dataclass(frozen=True, slots=True)
class Liveness:
    brokers: dict[int, BrokerView]
    outages: dict[int, tuple[Outage, ...]]
    ended_at: Instant | None = None
    """When the whole cluster was shut down."""
    last_reached: dict[int, Instant] = field(default_factory=dict)
    """Of brokers of which nobody can say whether they are alive: when they last were."""


class _Report(NamedTuple):
    """One witness reports on one broker. `alive` is None where a survey contradicts itself."""

    at: Instant
    witness: int
    alive: bool | None
    text: str
    source: str
    orderly: bool = False


def _order(report: _Report) -> tuple[Instant, int, int, str, str]:
    """By time. Of one witness at one time, a report that the broker is alive counts most."""
    counts = (False, None, True).index(report.alive)
    return report.at, report.witness, counts, report.text, report.source


def liveness(
    observations: Observations, views: Mapping[TopicPartition, Sequence[PartitionView]], now: Instant
) -> Liveness:
    """`views`: the newest of each witness."""
    newest = [view for views_of_partition in views.values() for view in views_of_partition]
    known = _known_brokers(observations, newest)
    reports_by_node: defaultdict[int, list[_Report]] = defaultdict(list)
    for node, report in _by_logs(observations.events):
        if node in known:
            reports_by_node[node].append(report)
    surveyed: dict[int, Instant] = {}
    for node, report in _by_survey(observations, newest, known, now):
        reports_by_node[node].append(report)
        surveyed[node] = min(report.at, surveyed.get(node, report.at))
    for row in observations.brokers:
        alive = True if row.source == QUORUM else row.alive  # It was there then, whatever is so now.
        seen = row.at or 0
        is_past = row.source in _OF_THE_PAST and seen < surveyed.get(row.node_id, seen + 1)
        if is_past and alive is not None and row.node_id in known:
            reports_by_node[row.node_id].append(_Report(seen, _SURVEY, alive, row.reason, row.source))
    undated: dict[int, _Report] = {}
    for node, at, report in _by_tools(newest):
        if at is not None:
            reports_by_node[node].append(report)
        else:
            undated[node] = report
    ended_at = _end_of_cluster(known, reports_by_node, undated)
    brokers, outages, last_reached = {}, {}, {}
    rows = _newest_rows(observations.brokers)
    for node in sorted(known):
        reports = sorted(reports_by_node[node], key=_order)
        if ended_at is not None:
            reports = [report for report in reports if report.at < ended_at]
        verdict = _verdict(reports, undated.get(node))
        row = rows.get(node) or BrokerView(node)
        if verdict is None:
            brokers[node] = replace(row, alive=None, reason="nothing tells")
        else:
            why, at, source = "" if verdict.alive else verdict.text, verdict.at or None, verdict.source
            row = replace(row, alive=verdict.alive, reason=why, at=at, source=source or row.source)
            brokers[node] = row
            reached = [report.at for report in reports if report.alive]
            if verdict.alive is None and reached:
                last_reached[node] = max(reached)
        away = tuple(_outages(node, reports, undated.get(node)))
        if away:
            outages[node] = away
    return Liveness(brokers, outages, ended_at, last_reached)


def _known_brokers(observations: Observations, newest: Sequence[PartitionView]) -> set[int]:
    """Brokers that something says are part of the cluster now."""
    by_partitions = {node for view in newest for node in (*view.replicas, view.leader) if node >= 0}
    was_surveyed = any(view.told_by is not None for view in newest)
    without = _OF_THE_PAST if was_surveyed else (QUORUM,)  # Controllers are in the quorum, too.
    return by_partitions | {row.node_id for row in observations.brokers if row.source not in without}


def _verdict(reports: Sequence[_Report], undated: _Report | None) -> _Report | None:
    """The newest report. One without a time is the newest, unless another says that the broker went."""
    if undated is None or not reports:
        return reports[-1] if reports else undated
    went_before = any(report.alive is False for report in reports)
    return reports[-1] if went_before else undated


def _outages(node: int, reports: Sequence[_Report], undated: _Report | None) -> Iterator[Outage]:
    away: Outage | None = None
    alive_at: Instant | None = None
    for report in reports:
        if report.alive is False:
            if away is None:
                # A log line is written when the broker goes; a survey comes at any time after.
                since = report.at if report.witness == _LOG else None
                away = Outage(node, since, None, False, report.text, report.source, report.at, alive_at)
            away = replace(away, orderly=away.orderly or report.orderly)
        elif report.alive:
            alive_at = report.at
            if away is not None:
                yield replace(away, until=report.at)
                away = None
    if away is not None:
        yield away
    elif undated is not None and undated.alive is False and _verdict(reports, undated) is undated:
        yield Outage(node, None, None, False, undated.text, undated.source)


def _by_logs(events: Iterable[Event]) -> Iterator[tuple[int, _Report]]:
    for event in events:
        if event.node is not None and event.at is not None and (event.kind in _DOWN or event.kind in _UP):
            orderly = event.kind is EventKind.BROKER_STOPPED
            yield event.node, _Report(event.at, _LOG, event.kind in _UP, event.text, event.source, orderly)


def _by_survey(
    observations: Observations, newest: Sequence[PartitionView], known: set[int], now: Instant
) -> Iterator[tuple[int, _Report]]:
    asked = [view for view in newest if view.told_by is not None]
    at = max((view.at for view in asked if view.at is not None), default=now)
    rows_by_node: defaultdict[int, list[BrokerView]] = defaultdict(list)
    for row in observations.brokers:
        says_something = row.alive is not None or row.reason  # Else it only has the address.
        if row.source in _OF_THE_PAST:
            continue
        if says_something and (not asked or (row.at is not None and row.at >= at - ONE_SURVEY_MS)):
            rows_by_node[row.node_id].append(row)
    for node, rows in rows_by_node.items():
        last = max((row.at for row in rows if row.at is not None), default=now)
        latest = [row for row in rows if row.at is None or row.at >= last - ONE_SURVEY_MS]
        reached = next((row for row in latest if row.alive), None)
        missed = next((row for row in latest if row.alive is False), None)
        if reached is not None:
            yield node, _Report(last, _SURVEY, True, reached.reason, reached.source)
        elif missed is not None:
            listing = sorted({row.source for row in latest if row.alive is None and row.source})
            text = missed.reason
            if listing:
                text = f"{text.rstrip('.')}; yet listed as alive by {listed(listing)}"
            yield node, _Report(last, _SURVEY, None if listing else False, text, missed.source)
    if not asked:
        return
    asked_nodes = sorted({view.told_by for view in asked if view.told_by is not None})
    for node in known - rows_by_node.keys() - set(asked_nodes):
        who = numbered("broker", asked_nodes)
        yield node, _Report(at, _SURVEY, False, f"no longer listed by {who}", who)


def _by_tools(newest: Sequence[PartitionView]) -> Iterator[tuple[int, Instant | None, _Report]]:
    rows = [view for view in newest if view.told_by is None]
    if not rows:
        return
    at = max((view.at for view in rows if view.at is not None), default=None)
    living, dead = living_and_dead(rows)
    for node in living:
        yield node, at, _Report(at or 0, _TOOL, True, "", _a_source(rows, node))
    for node, text in dead.items():
        yield node, at, _Report(at or 0, _TOOL, False, text, _a_source(rows, node))


def living_and_dead(rows: Sequence[PartitionView]) -> tuple[set[int], dict[int, str]]:
    """The living brokers, and the dead ones with the reason, by one description of partitions."""
    led = [row for row in rows if row.leader >= 0]
    leaders = {row.leader for row in led}
    living = _surely_alive(led, leaders)
    while True:
        in_sync = {node for row in led if row.leader in living for node in row.in_sync}
        # The controller would have replaced a dead leader by a living broker that is in sync.
        leading = {row.leader for row in led if living & (set(row.in_sync) - {row.leader})}
        if in_sync | leading <= living:
            break
        living |= in_sync | leading
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


def _surely_alive(led: Sequence[PartitionView], leaders: set[int]) -> set[int]:
    """Leaders that are missing from no ISR; else those that took over from another leader; else those that
    are in sync in a partition of another leader; else all leaders.
    """
    missed = {node for row in led for node in row.replicas if node not in row.in_sync and node != row.leader}
    successors = {row.leader for row in led if row.replicas and row.replicas[0] not in row.in_sync}
    in_sync = {node for row in led for node in row.in_sync if node != row.leader}
    return leaders - missed or leaders & successors or leaders & in_sync or leaders


def _a_source(rows: Sequence[PartitionView], node: int) -> str:
    source = next((row.source for row in rows if node in row.replicas), "")
    return source.rpartition(":")[0] or source  # Without the line: all lines together show it.


def _end_of_cluster(
    known: set[int], reports_by_node: Mapping[int, list[_Report]], undated: Mapping[int, _Report]
) -> Instant | None:
    """When the shutdown of all brokers began; None if a broker is left, or if the last one crashed."""
    stops = []
    for node in known:
        reports = sorted(reports_by_node.get(node, ()), key=_order)
        last = _verdict(reports, undated.get(node))
        if reports and reports[-1].alive is False and any(report.orderly for report in _last_outage(reports)):
            stops.append(min(report.at for report in _last_outage(reports)))
        elif last is None or last.alive is not False:
            return None
    began = None
    for at in sorted(stops, reverse=True):
        if began is not None and at < began - _END_OF_CLUSTER_MS:
            break
        began = at
    return began


def _last_outage(reports: Sequence[_Report]) -> list[_Report]:
    last_up = max((at for at, report in enumerate(reports) if report.alive), default=-1)
    return [report for report in reports[last_up + 1 :] if report.alive is False]


def _newest_rows(rows: Iterable[BrokerView]) -> dict[int, BrokerView]:
    """The newest host, port, rack and release of each broker; a later row may leave some of them empty."""
    newest: dict[int, BrokerView] = {}
    for row in sorted(rows, key=lambda row: row.at or 0):
        before = newest.get(row.node_id, row)
        newest[row.node_id] = replace(
            row,
            host=row.host or before.host,
            port=row.port if row.host else before.port,
            rack=row.rack or before.rack,
            release=row.release or before.release,
            trouble="" if row.alive else row.trouble or before.trouble,
        )
    return newest
