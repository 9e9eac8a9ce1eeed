"""A repair from its plan to its end. It is done only if the plan that was seen first still holds.

What makes the plan is called again before anything is changed, under a lock that keeps other processes of
this user from repairing the same thing.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from kelpie.client.nodes import Nodes
from kelpie.client.settings import Settings
from kelpie.observations import OFFSETS_TOPIC
from kelpie.repair.applying import Repair, RepairResult, apply
from kelpie.repair.plan import Plan
from kelpie.repair.shown_plans import exclusive

Making = Callable[[Nodes], Awaitable[Repair]]
"""Looks at the cluster and plans. Raises CannotRepair, ClientError."""
Approval = Callable[[Plan, str], str | None]
"""Why this plan for this cluster must not be applied. None: it may be."""


@dataclass(frozen=True, slots=True)
class RepairRequest:
    make: Making
    subject: str = OFFSETS_TOPIC
    """Of which only one repair is done at a time."""


@dataclass(frozen=True, slots=True)
class Undertaking:
    """A request, for one cluster."""

    settings: Settings
    request: RepairRequest

    async def plan(self) -> tuple[Plan, str]:
        """The plan, and the cluster's name. Changes nothing. Raises CannotRepair, ClientError."""
        async with await Nodes.open(self.settings) as nodes:
            return (await self.request.make(nodes)).plan, self._cluster(nodes)

    async def apply(
        self, approve: Approval, on_report: Callable[[int, str], None] = lambda _number, _report: None
    ) -> RepairResult:
        """Plans again, and applies what is approved. A refusal, and a step that fails, are in the result.

        Raises CannotRepair, ClientError.
        """
        async with await Nodes.open(self.settings) as nodes:
            cluster = self._cluster(nodes)
            with exclusive(cluster, self.request.subject):
                repair = await self.request.make(nodes)
                refusal = approve(repair.plan, cluster)
                if refusal is not None:
                    return RepairResult(repair.plan, failure=refusal, is_refused=True)
                return await apply(repair, on_report)

    def _cluster(self, nodes: Nodes) -> str:
        return nodes.cluster_id or self.settings.bootstrap_servers
