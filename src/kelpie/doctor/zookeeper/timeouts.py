"""The settings that decide whether a rebalance outlasts the session of a dead owner.

Nothing is tried after the last sleep. So a member that meets the node of a dead one waits (retries − 1) ×
back-off, and succeeds only if ZooKeeper has expired the dead one's session by then.
"""

from dataclasses import dataclass

from kelpie.doctor.case import Case
from kelpie.doctor.zookeeper.sessions import begun
from kelpie.model.numbers import whole_number

RETRIES, BACKOFF_MS, SESSION_MS, COMMIT_MS = 4, 2_000, 6_000, 60_000
"""Kafka's defaults. The back-off is that of zookeeper.sync.time.ms."""


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Of one member."""

    member: str
    retries: int = RETRIES
    backoff_ms: int = BACKOFF_MS
    session_ms: int = SESSION_MS
    commit_ms: int = COMMIT_MS

    @property
    def waits_ms(self) -> int:
        """How long it waits, from the first try to the last, for another's node to go."""
        return max(0, self.retries - 1) * self.backoff_ms

    @property
    def gives_up_after_ms(self) -> int:
        """When the exception comes, apart from the time that the tries themselves take."""
        return self.retries * self.backoff_ms


def timeouts(case: Case) -> dict[str, Timeouts]:
    """By member: those whose settings are known. A setting that is left out has its default."""
    names = {member for snapshot in case.zookeeper for member in snapshot.members}
    names |= {event.member for event in case.events if event.member is not None}
    settings = case.cluster.settings
    of_group = f"group {case.group_id}"
    rows, granted = {}, _negotiated(case)
    for member in sorted(names | _configured(case)):
        of = f"consumer {member}"
        if (of, "group.id") not in settings:
            if (of_group, "group.id") not in settings:
                continue
            of = of_group
        sync = _number(case, of, "zookeeper.sync.time.ms", BACKOFF_MS)
        rows[member] = Timeouts(
            member,
            _number(case, of, "rebalance.max.retries", RETRIES),
            _number(case, of, "rebalance.backoff.ms", sync),
            granted.get(member) or _number(case, of, "zookeeper.session.timeout.ms", SESSION_MS),
            _number(case, of, "auto.commit.interval.ms", COMMIT_MS),
        )
    return rows


def _configured(case: Case) -> set[str]:
    """Members that only files of settings name."""
    prefix = "consumer "
    return {
        of.removeprefix(prefix)
        for (of, name), value in case.cluster.settings.items()
        if of.startswith(prefix) and name == "group.id" and value == case.group_id
    }


def _number(case: Case, of: str, name: str, default: int) -> int:
    value = case.cluster.settings.get((of, name), "")
    return int(value) if value.isdecimal() and len(value) < 10 else default


def _negotiated(case: Case) -> dict[str, int]:
    """What ZooKeeper has granted each member: it keeps to limits of its own."""
    return {
        member: granted
        for member, event in begun(case)
        if (granted := whole_number(event.details.get("timeout_ms", ""))) is not None
    }
