"""The page on which people cause faults in a cluster of the lab, and see which groups turn red.

The lab lives on the event loop that opened it: everything that touches it is run there.
"""

import asyncio
from collections.abc import Coroutine, Mapping, Sequence
from typing import Any, TypeVar

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute

from kelpie.lab.cluster import Cluster
from kelpie.lab.faults import Fault
from kelpie.lab.lab_errors import LabError
from kelpie.model.names import TopicPartition
from kelpie.web.access.forms import form_of
from kelpie.web.language import gettext
from kelpie.web.pages import Page
from kelpie.web.site import Link, Site
from kelpie.web.watch import Watch

PATH = "/lab"
_RENEW_S = 2
_LIMIT_S = 30.0
_LOADING_MS = 20_000
_MOST_GROUPS = 500

T = TypeVar("T")


class LabSection:
    def __init__(self, cluster: Cluster, watch: Watch, loop: asyncio.AbstractEventLoop) -> None:
        """`loop`: that of the cluster."""
        self._cluster = cluster
        self._watch = watch
        self._loop = loop
        self._down: dict[int, Fault] = {}
        """Faults by which brokers were killed or stopped here."""

    def routes(self, site: Site) -> Sequence[BaseRoute]:
        return [*site.routes(PATH, self._page), site.posted(PATH, self._cause)]

    def links(self, cluster: str | None) -> Sequence[Link]:
        del cluster
        return [(PATH, gettext("Lab"))]

    def links_of_group(self, cluster: str, group: str) -> Sequence[Link]:
        del cluster, group
        return []

    def _page(self, request: Request, problem: str = "") -> Page:
        del request
        brokers, faults = self._on_loop(self._state())
        look = self._watch.latest
        rows = sorted(
            look.groups if look is not None else (),
            key=lambda row: (-(row.worst.severity if row.worst is not None else -1), row.group),
        )
        data = {
            "brokers": [{"broker": node, "alive": alive} for node, alive in brokers],
            "faults": [{"id": number, "what": what, "hits": hits} for number, what, hits in faults],
            "groups": [
                {"group": row.group, "finding": row.worst.code if row.worst is not None else None}
                for row in rows
            ],
            "error": problem or None,
        }
        values = {
            "title": gettext("Lab"),
            "brokers": brokers,
            "faults": faults,
            "cluster": self._watch.name,
            "rows": rows[:_MOST_GROUPS],
            "problem": problem,
            "every_s": _RENEW_S,
        }
        return Page("lab.html", data, values, 409 if problem else 200)

    def _cause(self, request: Request) -> Page | Response:
        try:
            self._on_loop(self._caused(request.query_params, form_of(request)))
        except LabError as error:
            return self._page(request, str(error))
        return RedirectResponse(PATH, 303)

    # On the loop of the lab.

    def _on_loop(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(_LIMIT_S)

    async def _state(self) -> tuple[list[tuple[int, bool]], list[tuple[int, str, int]]]:
        brokers = [(node, self._cluster.is_alive(node)) for node in self._cluster.node_ids]
        faults = [(fault.id, fault.what, fault.hits) for fault in self._cluster.faults if fault.active]
        return brokers, faults

    async def _caused(self, query: Mapping[str, str], form: Mapping[str, str]) -> None:
        """Raises LabError for what cannot be."""
        act = query.get("do", "")
        if act in _OF_BROKERS:
            await self._to_broker(act, _number(query.get("node", "")))
        elif act in ("lose-offsets", "expire-offsets", "stall"):
            self._to_group(act, form.get("group", ""))
        elif act == "leaderless":
            self._leaderless(form.get("partition", ""))
        elif act == "slow-load":
            self._cluster.slow_load(_LOADING_MS)
        elif act == "lift":
            wanted = _number(query.get("fault", ""))
            for fault in list(self._cluster.faults):
                if fault.id == wanted:
                    fault.lift()
        else:
            raise LabError("There is no such fault.")

    async def _to_broker(self, act: str, node: int) -> None:
        cluster: Any = self._cluster
        if act in ("kill", "stop"):
            self._down[node] = await getattr(cluster, act)(node)
        elif act == "start":
            fault = self._down.pop(node, None)
            if fault is not None and fault.active:
                fault.lift()
            else:
                await cluster.start(node)
        elif act == "wall-off":
            await cluster.wall_off(node)
        elif act == "stall-broker":
            cluster.stall(node=node)
        else:
            {"isolate": cluster.isolate, "freeze": cluster.freeze_metadata, "lag": cluster.lag}[act](node)

    def _to_group(self, act: str, group: str) -> None:
        if not group:
            raise LabError("Name the group.")
        cluster = self._cluster
        if act == "lose-offsets":
            cluster.lose_offsets(group)
        elif act == "expire-offsets":
            cluster.expire_offsets(group)
        else:
            cluster.stall(group=group)

    def _leaderless(self, text: str) -> None:
        topic, _, number = text.strip().rpartition("-")
        if not topic:
            raise LabError("Name the partition, as orders-3.")
        name = TopicPartition(topic, _number(number))
        self._cluster.make_leaderless(name.topic, name.partition)


_OF_BROKERS = ("kill", "stop", "start", "isolate", "wall-off", "stall-broker", "freeze", "lag")


def _number(text: str) -> int:
    if not text.isascii() or not text.isdecimal() or len(text) > 9:
        raise LabError("That is no number.")
    return int(text)
