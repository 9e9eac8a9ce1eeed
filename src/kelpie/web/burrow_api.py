"""Burrow's addresses below /v3/kafka, read-only, for programs that were written for Burrow."""

import socket
from collections.abc import Callable, Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from kelpie.doctor.case import Case
from kelpie.doctor.finding import Finding
from kelpie.doctor.overview import PartitionOverview, partitions_of
from kelpie.web.exporters.burrow import Status, present, status_of_group, status_of_partition
from kelpie.web.snapshot import Snapshot
from kelpie.web.watch import Watch

_Answer = tuple[str, dict[str, Any]]
"""A message, and what follows it."""
_Handle = Callable[[Snapshot, Mapping[str, str]], _Answer]


class _NotFound(Exception):
    """What Burrow answers with status 404."""


def routes(watches: Mapping[str, Watch]) -> list[Route]:
    def cluster(
        handle: Callable[[Snapshot, Mapping[str, str]], _Answer],
    ) -> Callable[[Request], JSONResponse]:
        def answer(request: Request) -> JSONResponse:
            watch = watches.get(request.path_params["cluster"])
            if watch is None or watch.latest is None:
                return _respond(request, "cluster not found", {}, 404)
            try:
                message, values = handle(watch.latest, request.path_params)
            except _NotFound as error:
                return _respond(request, str(error), {}, 404)
            return _respond(request, message, values)

        return answer

    def clusters(request: Request) -> JSONResponse:
        return _respond(request, "cluster list returned", {"clusters": list(watches)})

    root = "/v3/kafka"
    of_cluster = f"{root}/{{cluster}}"
    return [
        Route(root, clusters),
        Route(f"{of_cluster}/topic", cluster(_topics)),
        Route(f"{of_cluster}/topic/{{topic}}", cluster(_topic)),
        Route(f"{of_cluster}/topic/{{topic}}/consumers", cluster(_readers)),
        Route(f"{of_cluster}/consumer", cluster(_groups)),
        Route(f"{of_cluster}/consumer/{{group}}", cluster(_group)),
        Route(f"{of_cluster}/consumer/{{group}}/status", cluster(_status)),
        Route(f"{of_cluster}/consumer/{{group}}/lag", cluster(_lag)),
    ]


def _respond(request: Request, message: str, values: dict[str, Any], status: int = 200) -> JSONResponse:
    about = {"url": request.url.path, "host": socket.gethostname()}
    return JSONResponse(
        {"error": status != 200, "message": message, **values, "request": about}, status_code=status
    )


def _topics(look: Snapshot, _: Mapping[str, str]) -> _Answer:
    names = sorted({name.topic for name in look.diagnosis.cluster.views})
    return "topic list returned", {"topics": names}


def _topic(look: Snapshot, path: Mapping[str, str]) -> _Answer:
    cluster = look.diagnosis.cluster
    names = sorted(name for name in cluster.views if name.topic == path["topic"])
    if not names:
        raise _NotFound("topic not found")
    ends = [cluster.ends.get(name) for name in names]
    return "topic offsets returned", {"offsets": [end[-1].latest if end else -1 for end in ends]}


def _readers(look: Snapshot, path: Mapping[str, str]) -> _Answer:
    reading = [
        case.group
        for case in look.cases()
        if any(row.name.topic == path["topic"] for row in partitions_of(case))
    ]
    return "consumers of topic returned", {"consumers": reading}


def _groups(look: Snapshot, _: Mapping[str, str]) -> _Answer:
    return "consumer list returned", {"consumers": [row.group for row in look.groups]}


def _group(look: Snapshot, path: Mapping[str, str]) -> _Answer:
    """Of each partition the last offset: Burrow has its last ten."""
    topics: dict[str, list[dict[str, Any]]] = {}
    for row in partitions_of(_case(look, path)):
        offsets = [] if row.offset is None else [_offset(row)]
        about = {"offsets": offsets, "owner": row.host, "client_id": row.client_id}
        topics.setdefault(row.name.topic, []).append({**about, "current-lag": row.lag or 0})
    return "consumer detail returned", {"topics": topics}


def _status(look: Snapshot, path: Mapping[str, str]) -> _Answer:
    """Only the partitions that are not well."""
    return "consumer status returned", {"status": _whole(look, path, all_partitions=False)}


def _lag(look: Snapshot, path: Mapping[str, str]) -> _Answer:
    return "consumer status returned", {"status": _whole(look, path, all_partitions=True)}


def _whole(look: Snapshot, path: Mapping[str, str], *, all_partitions: bool) -> dict[str, Any]:
    case = _case(look, path)
    findings = present(look.findings_of(case.group))
    rows = partitions_of(case)
    partitions = [_partition(row, findings) for row in rows]
    known = [each for each, row in zip(partitions, rows, strict=True) if row.lag is not None]
    return {
        "cluster": path["cluster"],
        "group": case.group,
        "status": status_of_group(findings).name,
        "complete": len(known) / len(rows) if rows else 0.0,
        "partitions": [each for each in partitions if all_partitions or each["status"] != Status.OK.name],
        "partition_count": len(rows),
        "maxlag": max(known, key=lambda each: each["current_lag"], default=None),
        "totallag": sum(each["current_lag"] for each in known),
    }


def _case(look: Snapshot, path: Mapping[str, str]) -> Case:
    case = look.case(path["group"])
    if case is None:
        raise _NotFound("cluster or consumer not found")
    return case


def _partition(row: PartitionOverview, findings: list[Finding]) -> dict[str, Any]:
    offset = None if row.offset is None else _offset(row)
    return {
        "topic": row.name.topic,
        "partition": row.name.partition,
        "owner": row.host,
        "client_id": row.client_id,
        "status": status_of_partition(findings, row.name).name,
        "start": offset,
        "end": offset,
        "current_lag": row.lag or 0,
        "complete": float(row.lag is not None),
    }


def _offset(row: PartitionOverview) -> dict[str, Any]:
    return {"offset": row.offset, "timestamp": row.last_commit or 0, "lag": row.lag}
