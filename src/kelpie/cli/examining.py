"""One look of the doctor: survey, history, earlier surveys and files come together, and are judged."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from kelpie.client.client_errors import ClientError
from kelpie.client.history import BYTES_PER_PARTITION, read_history
from kelpie.client.nodes import Nodes
from kelpie.client.settings import Settings
from kelpie.client.survey import survey, unreachable, wall_clock
from kelpie.doctor.cases import build
from kelpie.doctor.diagnosis import Diagnosis, diagnose_all
from kelpie.model.time import Instant
from kelpie.observations import Observations
from kelpie.store import Store


@dataclass(frozen=True, slots=True)
class Examination:
    """What is to be looked at, and how."""

    settings: Settings | None = None
    """None: there are files only."""
    groups: Sequence[str] | None = None
    evidence: Observations = field(default_factory=Observations)
    history_bytes: int | None = BYTES_PER_PARTITION
    """So much of the end of each partition of the offsets topic is read. None: nothing of it."""
    store: Store | None = None
    clock: Callable[[], Instant] = wall_clock
    """Milliseconds since 1970."""

    async def look(self) -> tuple[Diagnosis, bool]:
        """What was found; and whether there was anything to look at."""
        if self.settings is None:
            return self._judged(Observations(), "", None), self._has_evidence
        addresses = [str(address) for address in self.settings.bootstrap]
        bootstrap = ",".join(addresses)
        try:
            nodes = await Nodes.open(self.settings)
        except ClientError as error:
            name = self.store.name_of(addresses) if self.store is not None else ""
            # Who is known is told; how they were is not how they are, as nobody says anything about today.
            known = self._earlier(name).known_groups
            seen = unreachable(error, known, self.clock)
            return self._judged(seen, bootstrap, self.clock()), self._has_evidence
        async with nodes:
            name = cluster_name(nodes, self.store) if self.store is not None else ""
            earlier = self._earlier(name)
            seen = await self._ask(nodes, earlier)
        now = self.clock()
        diagnosis = self._judged(Observations().add(seen, earlier), bootstrap, now)
        answered = any(broker.alive for broker in seen.brokers)
        if self.store is not None and answered:
            self.store.remember(name, seen, now, _gone(diagnosis), addresses_of(nodes))
        return diagnosis, answered or self._has_evidence

    @property
    def _has_evidence(self) -> bool:
        return self.evidence != Observations(unasked=self.evidence.unasked)

    def _earlier(self, cluster: str) -> Observations:
        return Observations() if self.store is None else self.store.recall(cluster, self.clock())

    async def _ask(self, nodes: Nodes, earlier: Observations) -> Observations:
        known = {**earlier.known_groups, **self.evidence.known_groups}
        seen = await survey(nodes, groups=self.groups, known=known, now=self.clock)
        if self.history_bytes is not None and any(broker.alive for broker in seen.brokers):
            seen.add(await read_history(nodes, seen, self.history_bytes, groups=self.groups))
        return seen

    def _judged(self, seen: Observations, bootstrap: str, now: Instant | None) -> Diagnosis:
        cluster, cases = build(seen.add(self.evidence), now=now, groups=self.groups, bootstrap=bootstrap)
        return diagnose_all(cluster, cases)


def addresses_of(nodes: Nodes) -> list[str]:
    """Where the cluster is found: those that a person named, and those that its brokers announce."""
    announced = [broker.address for broker in nodes.brokers.values()]
    return [str(address) for address in dict.fromkeys([*nodes.settings.bootstrap, *announced])]


def cluster_name(nodes: Nodes, store: Store) -> str:
    """What the store calls the cluster: its id; Kafka before 0.10.1 has none, and goes by its addresses."""
    return nodes.cluster_id or store.name_of(addresses_of(nodes), nameless=True)


def _gone(diagnosis: Diagnosis) -> list[str]:
    """Groups that are not listed though their coordinator is there: they were deleted, or have expired."""
    hit = {finding.group for finding in diagnosis.findings}
    return [group for group, _ in diagnosis.unlisted if group not in hit]
