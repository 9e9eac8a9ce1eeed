"""Clusters that run for a person at a terminal: one folder per name, with all that is needed to find them."""

import contextlib
import json
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from kelpie import folders
from kelpie.real import locks
from kelpie.real.cluster import RealCluster
from kelpie.real.cluster_errors import ClusterRefused, RealError
from kelpie.real.fleet import FleetNode
from kelpie.real.identity import ProcessIdentity
from kelpie.real.process import Jvm

DEFAULT = "default"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,39}")
_FILE = "cluster.json"
_FORMAT = 1


def folder(name: str) -> Path:
    if not _NAME.fullmatch(name):
        raise ClusterRefused(
            f"{name!r} cannot name a cluster. A name has up to 40 letters, digits, '-' and '_', "
            "and begins with a letter or a digit."
        )
    return _all() / name


def locked(name: str) -> AbstractContextManager[None]:
    """One command at a time changes a cluster."""
    path = folder(name)
    return locks.held(path.with_name(f".{name}.lock"), limit_s=5.0, purpose=f"at work on cluster {name}")


def names() -> list[str]:
    return sorted(path.parent.name for path in _all().glob(f"*/{_FILE}"))


def exists(name: str) -> bool:
    return (folder(name) / _FILE).is_file()


def clear(name: str) -> None:
    """Remove the folder of a start that ended early together with its guardian."""
    if not exists(name):
        shutil.rmtree(folder(name), ignore_errors=True)


def save(cluster: RealCluster) -> None:
    document = {
        "format": _FORMAT,
        "version": cluster.release.version,
        "brokers": cluster.size,
        "config": cluster.settings,
        "jvm_options": cluster.jvm_options,
        "nodes": [_node_to_json(node) for node in cluster.nodes.values()],
    }
    path = cluster.root / _FILE
    part = path.with_suffix(".part")
    part.write_text(json.dumps(document, indent=2) + "\n")
    os.replace(part, path)


def load(name: str) -> RealCluster:
    root = folder(name)
    try:
        document = json.loads((root / _FILE).read_text())
    except FileNotFoundError:
        up = ", ".join(names())
        raise RealError(
            f"No cluster named {name!r} is up. "
            + (f"Up: {up}; choose one with --name." if up else "Start one with: kelpie real up")
        ) from None
    except (OSError, ValueError) as error:
        raise _unreadable(root, error) from None
    try:
        if document["format"] != _FORMAT:
            raise ValueError(f"format {document['format']}, not {_FORMAT}")
        cluster = RealCluster(
            document["version"],
            document["brokers"],
            config=document["config"],
            jvm_options=document["jvm_options"],
        )
        cluster.adopt(root, [_node_from_json(root, node) for node in document["nodes"]])
    except (KeyError, TypeError, ValueError) as error:
        raise _unreadable(root, error) from None
    return cluster


@contextlib.contextmanager
def changing(name: str) -> Iterator[RealCluster]:
    """A cluster to work on. Its state is saved afterwards, also when the work fails."""
    with locked(name):
        cluster = load(name)
        try:
            yield cluster
        finally:
            if cluster.nodes:
                save(cluster)
            cluster.detach()


def _all() -> Path:
    return folders.state() / "real"


def _unreadable(root: Path, error: Exception) -> RealError:
    return RealError(
        f"{root / _FILE} cannot be read: {error}. End the processes whose command lines name that folder, "
        "then remove it."
    )


def _node_to_json(node: FleetNode) -> dict[str, Any]:
    identity = node.process.identity if node.process else None
    return {
        "name": node.name,
        "kind": node.kind,
        "port": node.port,
        "pid": identity.pid if identity else None,
        "start": identity.start if identity else None,
    }


def _node_from_json(root: Path, document: dict[str, Any]) -> FleetNode:
    node = FleetNode(document["name"], document["kind"], document["port"], root / document["name"])
    if document["pid"] is not None:
        node.process = Jvm(ProcessIdentity(document["pid"], document["start"]), node.log)
    return node
