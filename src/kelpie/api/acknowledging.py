"""What people know about, and no longer want to be told: `kelpie ack`."""

import getpass
import time
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

from kelpie.acknowledgements import SEVERITIES, Acknowledgements, ByCluster
from kelpie.client.address import Address
from kelpie.doctor.finding import Severity, names_group
from kelpie.doctor.rule_names import rule_named
from kelpie.model.kelpie_error import KelpieError
from kelpie.model.time import Instant
from kelpie.model.words import moment
from kelpie.observations.acknowledgement import Acknowledgement
from kelpie.store import Store


def acknowledge(
    code: str,
    group: str | None = None,
    *,
    until: Instant | datetime | timedelta,
    why: str,
    by: str | None = None,
    severity: str | None = None,
    cluster: str | None = None,
    store: Path | None = None,
) -> Acknowledgement:
    """Acknowledges a finding for a while: it no longer counts for the verdict, unless it gets worse.

    `group`: a name or a pattern; None: what concerns the cluster as a whole. `until`: a time (milliseconds
    since 1970, or UTC if it names no zone), or from now on how long. `severity`: what is worse is told all
    the same; as found last if left out. `cluster`: its addresses, or its name in the store; else the only
    one that is known. Raises KelpieError.
    """
    if group == "":
        raise KelpieError("An empty name is no name for a group.")
    if not why.strip():
        raise KelpieError("Say why nobody need attend to it.")
    known = Store(store)
    name, rule = cluster_in(known, cluster), rule_named(code)
    now = time.time_ns() // 1_000_000
    row = Acknowledgement(
        group,
        rule.code,
        severity if severity is not None else _found(known.found(name), group, rule.code),
        _instant(until, now),
        by or _account(),
        why.strip(),
        now,
    )
    if row.severity not in SEVERITIES:
        raise KelpieError(f"There is no severity {severity!r}; choose {', '.join(SEVERITIES)}.")
    Acknowledgements(store).add({name: [row]}, now)
    return row


def unacknowledge(
    code: str, group: str | None = None, *, cluster: str | None = None, store: Path | None = None
) -> bool:
    """Takes an acknowledgement back; whether there was one. Raises KelpieError."""
    name = cluster_in(Store(store), cluster)
    now = time.time_ns() // 1_000_000
    return Acknowledgements(store).remove(name, group, rule_named(code).code, now)


def list_acknowledgements(store: Path | None = None) -> ByCluster:
    """All of them, by the cluster's name in the store, with those that expired lately. Raises KelpieError."""
    return Acknowledgements(store).all()


def cluster_in(store: Store, place: str | None) -> str:
    """The name of a cluster in the store. Raises KelpieError.

    By addresses, by a name, which need not be known yet, or the only one that is known.
    """
    known = store.clusters()
    if place is None:
        if len(known) != 1:
            raise KelpieError(
                "Which cluster? Give its address (-b HOST:PORT), or one of these names (--cluster): "
                f"{', '.join(known) or 'none is known yet'}."
            )
        return known[0]
    if place in known or ":" not in place:
        return place
    name = store.name_of([str(address) for address in Address.parse_list(place)])
    if name not in known:
        raise KelpieError(f"No look at {name} is remembered. Run kelpie doctor -b {name} first.")
    return name


def _found(found: Mapping[tuple[str | None, str], str], group: str | None, code: str) -> str:
    """How bad the last look found it."""
    known = [
        Severity.of(word)
        for (of, found_code), word in found.items()
        if found_code == code and names_group(group, of)
    ]
    if not known:
        raise KelpieError(
            f"The last look found no {code} {'for ' + group if group is not None else 'of the cluster'}. To "
            "acknowledge it beforehand, say how bad it may get: --severity warning."
        )
    return max(known).word


def _instant(until: Instant | datetime | timedelta, now: Instant) -> Instant:
    if isinstance(until, timedelta):
        return now + round(until.total_seconds() * 1000)
    if isinstance(until, datetime):
        at = until if until.tzinfo is not None else until.replace(tzinfo=UTC)
        until = round(at.timestamp() * 1000)
    if until <= now:
        raise KelpieError(f"{moment(until)} is over.")
    return until


def _account() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "somebody"
