"""One examination of a cluster: survey it, recall earlier surveys, judge, remember; and what has changed."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Self, TypeVar

from kelpie.acknowledgements import Acknowledgements, UnreadableAcknowledgements
from kelpie.client.client_errors import ClientError
from kelpie.client.garbage import few_collections
from kelpie.client.history import BYTES_PER_PARTITION, read_history
from kelpie.client.nodes import Nodes
from kelpie.client.settings import Settings
from kelpie.client.survey import SurveyOptions, survey, unreachable, wall_clock
from kelpie.client.zookeeper_survey import ZooKeeperPlace, survey_zookeeper
from kelpie.doctor.case import Case
from kelpie.doctor.cases import build
from kelpie.doctor.chapters import presentation_of
from kelpie.doctor.diagnosis import Cost, Diagnosis, diagnose_all
from kelpie.doctor.finding import Finding, Severity
from kelpie.examination.kept_answers import KeptAnswers
from kelpie.examination.memory import Recollection, addresses_of
from kelpie.model.selection import Selection
from kelpie.model.time import Instant
from kelpie.observations import Committed, Illness, LogEnds, Observations, Unasked
from kelpie.observations.group_offsets import GroupOffsets
from kelpie.store import Store

_OfGroup = TypeVar("_OfGroup", Committed, GroupOffsets)
_GENTLE_HISTORY = 256 * 1024
"""Bytes of the end of each offsets partition."""


class Examined(NamedTuple):
    diagnosis: Diagnosis
    saw_anything: bool
    """False if neither a broker nor ZooKeeper answered, and files say nothing: so does the diagnosis."""
    cases: Sequence[Case] = ()
    """What was judged: all that is known of each group, by name."""

    def __repr__(self) -> str:
        """Short, because asyncio.run makes a text of the result: of all rows that would be a gigabyte."""
        return f"Examined({self.diagnosis.worst}, {len(self.cases)} groups)"


@dataclass(frozen=True, slots=True)
class Examination:
    """What to examine, and with what."""

    settings: Settings | None = None
    """How to reach the cluster. None: only files are examined."""
    groups: Sequence[str] | Selection | None = None
    """By name, or chosen among those that are known. None: all groups."""
    evidence: Observations = field(default_factory=Observations)
    """What files say (`kelpie.evidence.read_evidence`)."""
    history_bytes: int | None = BYTES_PER_PARTITION
    """How much of the end of each partition of the offsets topic is read. None: nothing."""
    store: Store | None = None
    """Where earlier surveys are. None: they are neither recalled nor remembered."""
    clock: Callable[[], Instant] = wall_clock
    """Milliseconds since 1970."""
    gentle: bool = False
    """Ask less: no log ends of the past, a shorter history, topics as two brokers see them."""
    zookeeper: ZooKeeperPlace | None = None
    """A ZooKeeper to ask as well, or alone."""
    kept: KeptAnswers | None = None
    """What looks leave to each other (`repeated`). None: each look asks everything."""

    def repeated(self) -> Self:
        """The same, for one look after the other: a look does not ask again what the last one has answered
        for now.
        """
        return replace(self, kept=KeptAnswers())

    async def examine(self) -> Examined:
        """Surveys the cluster and judges. A cluster that does not answer is a diagnosis, too."""
        with few_collections():
            return await self._examine()

    async def _examine(self) -> Examined:
        of_brokers, of_zookeeper = await asyncio.gather(self._ask_brokers(), self._ask_zookeeper())
        if of_brokers.answered:
            # Brokers know better which of them live, and who leads what.
            of_zookeeper.brokers, of_zookeeper.partitions = [], []
        of_zookeeper.add(await self._ends_of(of_zookeeper))
        is_live = self.settings is not None or self.zookeeper is not None
        now = self.clock() if is_live else None
        rows = Observations().add(of_brokers.rows, of_brokers.earlier, of_zookeeper)
        diagnosis, cases = self._judge(rows, now)
        diagnosis = replace(diagnosis, cost=of_brokers.cost)
        if self.store is not None and of_brokers.answered:
            assert now is not None
            self.store.remember(
                of_brokers.cluster,
                of_brokers.rows,
                now,
                _gone(diagnosis),
                of_brokers.addresses,
                ill=ill_groups(diagnosis, now),
                found=_severities(diagnosis),
                of_groups=None if diagnosis.cluster.all_groups else diagnosis.groups,
                alive={node: broker.alive for node, broker in diagnosis.cluster.brokers.items()},
            )
            diagnosis = self._acknowledged(self.store, diagnosis, of_brokers.cluster)
        saw_anything = of_brokers.answered or has_rows(of_zookeeper) or has_rows(self.evidence)
        return Examined(diagnosis, saw_anything, cases)

    async def _ask_brokers(self) -> "_Answers":
        if self.settings is None:
            return _Answers()
        addresses = [str(address) for address in self.settings.bootstrap]
        try:
            nodes = await Nodes.open(self.settings)
        except ClientError as error:
            name = self.store.name_of(addresses) if self.store is not None else ""
            # Earlier surveys name the groups. Their states say nothing about now, so they are left out.
            return _Answers(
                unreachable(error, self._recall(name).known_groups, self.clock, self.settings.security)
            )
        async with nodes:
            memory = (
                Recollection.of(nodes, self.store, self.clock(), by_group=True)
                if self.store is not None
                else None
            )
            if self.kept is not None:
                self.kept.begin(nodes.cluster_id)
            rows = await self._survey(nodes, memory.rows if memory is not None else Observations())
            name, earlier = memory.settled(rows) if memory is not None else ("", Observations())
            cost = Cost(nodes.counters.requests, nodes.counters.bytes_in, dict(nodes.counters.by_api))
        answered = any(broker.alive for broker in rows.brokers)
        return _Answers(rows, earlier, name, tuple(addresses_of(nodes)), answered, cost)

    @staticmethod
    def _acknowledged(store: Store, diagnosis: Diagnosis, cluster: str) -> Diagnosis:
        try:
            known = Acknowledgements(store.folder).of(cluster)
        except UnreadableAcknowledgements as error:
            store.words.append(f"{error}. Nothing counts as acknowledged.")
            return diagnosis
        return diagnosis.acknowledged(known) if known else diagnosis

    async def _ask_zookeeper(self) -> Observations:
        if self.zookeeper is None:
            return Observations()
        return await asyncio.to_thread(survey_zookeeper, self.zookeeper, self.clock)

    async def _ends_of(self, of_zookeeper: Observations) -> Observations:
        """Where the logs end that groups of ZooKeeper read, as brokers say: of -b, or those it names."""
        names = {row.name for group in of_zookeeper.zookeeper_groups for row in group.offsets}
        addresses = [broker.address for broker in of_zookeeper.brokers if broker.address]
        settings = self.settings or (Settings.of(",".join(addresses)) if addresses else None)
        if not names or settings is None:
            return Observations()
        from kelpie.client.admin.admin import Admin  # noqa: PLC0415 - only with ZooKeeper, and it is large.

        try:
            async with await Nodes.open(settings) as nodes:
                ends = await Admin(nodes, clock=self.clock).log_ends(names)
        except ClientError as error:
            place = settings.bootstrap_servers
            return Observations(unasked=[Unasked("broker", place, error.reason, self.clock())])
        return Observations(ends=list(ends), unasked=ends.unasked)

    def _recall(self, cluster: str) -> Observations:
        return Observations() if self.store is None else self.store.recall(cluster, self.clock())

    async def _survey(self, nodes: Nodes, earlier: Observations) -> Observations:
        known = {**earlier.known_groups, **self.evidence.known_groups}
        read = {row.topic for row in self._of_chosen(earlier.committed)}
        together = {row.names for row in self._of_chosen(earlier.group_offsets)}
        read.update(name.topic for names in together for name in names)
        began = self.clock()
        options, past_ends = self._options(earlier, began)
        observations = await survey(
            nodes,
            groups=self.groups,
            known=known,
            topics=read,
            options=options,
            now=self.clock,
            by_group=True,
            fresh=self.kept.fresh(began) if self.kept is not None else None,
        )
        if self.kept is not None:
            self.kept.take(observations, past_ends, began)
            observations.ends += past_ends
        history_bytes = self.history_bytes
        if history_bytes is not None and any(broker.alive for broker in observations.brokers):
            groups = self.groups
            if isinstance(groups, Selection):
                groups = None if groups.is_all else groups.chosen(_names(observations))
            if self.gentle:
                history_bytes = min(history_bytes, _GENTLE_HISTORY)
            history = await read_history(
                nodes,
                observations,
                history_bytes,
                groups=groups,
                by_request=True,
                kept=self.kept.history if self.kept is not None else None,
            )
            observations.add(history)
        return observations

    def _of_chosen(self, rows: Sequence[_OfGroup]) -> Iterable[_OfGroup]:
        """The rows of the groups that are examined."""
        if self.groups is None or (isinstance(self.groups, Selection) and self.groups.is_all):
            return rows
        names = self.groups
        if isinstance(names, Selection):
            names = names.chosen({row.group for row in rows})
        chosen = frozenset(names)  # There may be thousands of groups, and ten rows of each.
        return (row for row in rows if row.group in chosen)

    def _options(self, earlier: Observations, now: Instant) -> tuple[SurveyOptions, list[LogEnds]]:
        """What earlier surveys have seen of the past is not asked for again, nor what they have asked: those
        ends of logs come along.
        """
        if self.gentle:
            return SurveyOptions(look_back_s=(), most_views=0), []
        times = {row.at for row in earlier.ends if row.at is not None}
        uncovered: list[int] = []
        asked_before: list[LogEnds] = []
        for back in SurveyOptions().look_back_s:
            since, until = now - back * 2000, now - back * 500
            if any(since <= at <= until for at in times):
                continue
            kept = self.kept.past_ends(since, until) if self.kept is not None else []
            asked_before += kept
            if not kept:
                uncovered.append(back)
        return SurveyOptions(look_back_s=tuple(uncovered)), asked_before

    def _judge(self, rows: Observations, now: Instant | None) -> tuple[Diagnosis, Sequence[Case]]:
        cluster, cases = build(
            rows.add(self.evidence),
            now=now,
            groups=self.groups,
            bootstrap=self.settings.bootstrap_servers if self.settings is not None else "",
            zookeeper=self.zookeeper.hosts if self.zookeeper is not None else "",
        )
        return diagnose_all(cluster, cases), cases


@dataclass(frozen=True, slots=True)
class _Answers:
    """What brokers said, and what is known of the cluster from before."""

    rows: Observations = field(default_factory=Observations)
    earlier: Observations = field(default_factory=Observations)
    cluster: str = ""
    """Its name in the store."""
    addresses: Sequence[str] = ()
    answered: bool = False
    cost: Cost | None = None


def _names(survey: Observations) -> set[str]:
    """Of all groups that brokers list, or that are known from before."""
    return {group for listing in survey.listings for group in listing.groups} | survey.known_groups.keys()


def has_rows(observations: Observations) -> bool:
    """Whether anything was seen, besides reasons why it was not."""
    return observations != Observations(unasked=observations.unasked)


def _gone(diagnosis: Diagnosis) -> list[str]:
    """Groups that no broker lists, and that have no finding: they were deleted, or have expired."""
    with_findings = {finding.group for finding in diagnosis.findings}
    return [group for group, _ in diagnosis.unlisted if group not in with_findings]


def ill_groups(diagnosis: Diagnosis, now: Instant) -> list[Illness]:
    """Groups that do not consume, from when on. The next look does not take this time for their rhythm."""
    return [
        Illness(finding.group, finding.code, finding.since if finding.since is not None else now, now)
        for finding in diagnosis.findings
        if finding.group is not None
        and finding.until is None
        and finding.severity > Severity.NOTICE
        and presentation_of(finding.code).stops_group
    ]


def _severities(diagnosis: Diagnosis) -> dict[tuple[str | None, str], str]:
    """Of each group and code the worst finding: `kelpie ack` asks what it was last."""
    worst: dict[tuple[str | None, str], Severity] = {}
    for finding in diagnosis.findings:
        key = (finding.group, finding.code)
        worst[key] = max(finding.severity, worst.get(key, finding.severity))
    return {key: severity.word for key, severity in worst.items()}


class Changes(NamedTuple):
    new: tuple[Finding, ...]
    """Findings that the diagnosis before did not have."""
    gone: tuple[Finding, ...]
    """Findings that only the diagnosis before had."""


def changes(before: Diagnosis, after: Diagnosis) -> Changes:
    """Findings with the same id are the same finding, whatever their texts say. One that is acknowledged is
    none; so it is new when that ends.
    """
    old = {finding.id: finding for finding in before.unacknowledged}
    new = {finding.id: finding for finding in after.unacknowledged}
    return Changes(
        tuple(finding for identity, finding in new.items() if identity not in old),
        tuple(finding for identity, finding in old.items() if identity not in new),
    )
