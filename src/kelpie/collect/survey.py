"""One round: a survey of the cluster, as the content of one file; and what rounds remember of each other.

No broker lists a group whose coordinator is dead. So each group that was listed before is asked for by name,
until its own coordinator says that there is no such group. Settings are kept when they change. Where logs
ended some time ago is asked in the first round only: afterwards earlier rounds know.
"""

import asyncio
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from kelpie.client.admin.asking import Clock
from kelpie.client.admin.groups import ABSENT
from kelpie.client.client_errors import BadSettings, ClientError
from kelpie.client.nodes import Nodes
from kelpie.client.settings import Settings
from kelpie.client.survey import SurveyOptions, survey, unreachable
from kelpie.errors import ErrorCode
from kelpie.model.time import Instant, utc
from kelpie.observations import Observations, Unasked


class SurveyRound(NamedTuple):
    """One survey, and when it was made."""

    rows: Observations
    cluster_id: str | None
    """None: no broker answered, or the release has no cluster ids (before 0.10.1)."""
    answered: int
    begun: Instant
    ended: Instant


@dataclass(slots=True)
class Surveyor:
    """Asks one cluster, round by round."""

    settings: Settings
    clock: Clock
    limit_s: float
    """For one round as a whole."""
    known: dict[str, str] = field(default_factory=dict)
    """Groups that were seen in earlier rounds, and when."""
    topics: set[str] = field(default_factory=set)
    """Topics that groups had offsets in: each round asks whether they still exist."""
    rounds: int = 0

    @property
    def bootstrap(self) -> str:
        return self.settings.bootstrap_servers

    async def survey(self) -> SurveyRound:
        """Raises BadSettings, and nothing else that a cluster can cause."""
        begun = self.clock()
        cluster_id: str | None = None
        try:
            async with asyncio.timeout(self.limit_s):
                async with await Nodes.open(self.settings) as nodes:
                    cluster_id = nodes.cluster_id
                    options = SurveyOptions(sizes=True)
                    if self.rounds:
                        options = replace(options, look_back_s=())
                    rows = await survey(
                        nodes, known=self.known, topics=self.topics, options=options, now=self.clock
                    )
        except BadSettings:
            raise
        except ClientError as error:
            rows = unreachable(error, now=self.clock, security=self.settings.security)
        except TimeoutError:
            reason = f"The round took longer than {self.limit_s:g} s, and was broken off."
            rows = Observations(unasked=[Unasked("broker", self.bootstrap, reason, self.clock())])
        answered = sum(broker.alive is True for broker in rows.brokers)
        if answered:
            self.rounds += 1
            self.remember(rows, begun)
        listed = {group for listing in rows.listings for group in listing.groups}
        rows.known_groups = {group: why for group, why in self.known.items() if group not in listed}
        return SurveyRound(rows, cluster_id, answered, begun, self.clock())

    def remember(self, rows: Observations, at: Instant) -> None:
        """Notes groups and topics of a round, or of the last round of an earlier collector."""
        seen = f"an earlier survey ({utc(at):%Y-%m-%d %H:%M} UTC)"
        gone = {
            row.group
            for row in rows.states
            if row.error == ErrorCode.GROUP_ID_NOT_FOUND or (row.state == ABSENT and not row.error)
        }
        for group, source in rows.known_groups.items():
            self.known.setdefault(group, source)
        for listing in rows.listings:
            self.known.update(dict.fromkeys(listing.groups, seen))
        self.known.update({row.group: seen for row in rows.committed if row.offset >= 0})
        for group in gone:
            self.known.pop(group, None)
        self.topics.update(row.topic for row in rows.committed if row.offset >= 0)
