"""Burrow's addresses below /v3/kafka, read-only, for programs that were written for Burrow."""

import socket
from collections.abc import Callable, Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from kelpie.doctor.finding import Finding
from kelpie.doctor.standings import PartitionOverview
from kelpie.web.exporters.burrow import Status, present, status_of_group, status_of_partition
from kelpie.web.numbers import ClusterNumbers, GroupNumbers
from kelpie.web.watch import Watch

_Answer = tuple[str, dict[str, Any]]
"""A message, and what follows it."""
_Handle = Callable[[ClusterNumbers, Mapping[str, str]], _Answer]


class _NotFound(Exception):
    """What Burrow answers with status 404."""


def routes(watches: Mapping[str, Watch]) -> list[Route]:
    def cluster(handle: _Handle) -> Callable[[Request], JSONResponse]:
        def answer(request: Request) -> JSONResponse:
            watch = watches.get(request.path_params["cluster"])
            numbers = watch.meter.latest if watch is not None else None
            if numbers is None:
                return _respond(request, "cluster not found", {}, 404)
            try:
                message, values = handle(numbers, request.path_params)
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


def _topics(numbers: ClusterNumbers, _: Mapping[str, str]) -> _Answer:
    names = sorted({name.topic for name in numbers.cluster.views})
    return "topic list returned", {"topics": names}


def _topic(numbers: ClusterNumbers, path: Mapping[str, str]) -> _Answer:
    cluster = numbers.cluster
    names = sorted(name for name in cluster.views if name.topic == path["topic"])
    if not names:
        raise _NotFound("topic not found")
    ends = [numbers.ends.get(name) for name in names]
    known = [end.latest if end is not None else None for end in ends]
    return "topic offsets returned", {"offsets": [-1 if end is None else end for end in known]}


def _readers(numbers: ClusterNumbers, path: Mapping[str, str]) -> _Answer:
    reading = [
        name
        for name, group in numbers.groups.items()
        if any(row.name.topic == path["topic"] for row in group.partitions)
    ]
    return "consumers of topic returned", {"consumers": reading}


def _groups(numbers: ClusterNumbers, _: Mapping[str, str]) -> _Answer:
    return "consumer list returned", {"consumers": list(numbers.groups)}


def _group(numbers: ClusterNumbers, path: Mapping[str, str]) -> _Answer:
    """Of each partition the last offset: Burrow has its last ten."""
    topics: dict[str, list[dict[str, Any]]] = {}
    for row in _named(numbers, path).partitions:
        offsets = [] if row.offset is None else [_offset(row)]
        about = {"offsets": offsets, "owner": row.host, "client_id": row.client_id}
        topics.setdefault(row.name.topic, []).append({**about, "current-lag": row.lag or 0})
    return "consumer detail returned", {"topics": topics}


def _status(numbers: ClusterNumbers, path: Mapping[str, str]) -> _Answer:
    """Only the partitions that are not well."""
    return "consumer status returned", {"status": _whole(numbers, path, all_partitions=False)}


def _lag(numbers: ClusterNumbers, path: Mapping[str, str]) -> _Answer:
    return "consumer status returned", {"status": _whole(numbers, path, all_partitions=True)}


def _whole(numbers: ClusterNumbers, path: Mapping[str, str], *, all_partitions: bool) -> dict[str, Any]:
    group = _named(numbers, path)
    findings = present(numbers.of_group.get(group.row.group, ()))
    rows = group.partitions
    partitions = [_partition(row, findings) for row in rows]
    known = [each for each, row in zip(partitions, rows, strict=True) if row.lag is not None]
    return {
        "cluster": path["cluster"],
        "group": group.row.group,
        "status": status_of_group(findings).name,
        "complete": len(known) / len(rows) if rows else 0.0,
        "partitions": [each for each in partitions if all_partitions or each["status"] != Status.OK.name],
        "partition_count": len(rows),
        "maxlag": max(known, key=lambda each: each["current_lag"], default=None),
        "totallag": sum(each["current_lag"] for each in known),
    }


def _named(numbers: ClusterNumbers, path: Mapping[str, str]) -> GroupNumbers:
    group = numbers.groups.get(path["group"])
    if group is None:
        raise _NotFound("cluster or consumer not found")
    return group


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
