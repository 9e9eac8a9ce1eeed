"""Which settings of a ZooKeeper group to change, to what, and why.

The rule: the last try must come after a dead member's session has ended. A session that has just been heard
of ends up to one tick of ZooKeeper's after its timeout, and after the last try nothing follows but a sleep:

    (rebalance.max.retries − 1) × rebalance.backoff.ms  >  zookeeper.session.timeout.ms + tickTime

"retries × back-off > session timeout", which is often quoted, is not enough: it holds for the defaults
(4 × 2 s > 6 s), and their rebalances fail.
"""

from dataclasses import dataclass, replace

from kelpie.model.words import counted, duration
from kelpie.zookeeper.simulation.group import GroupSettings

LONG_SESSION_MS = 30_000
_MANY_MEMBERS = 5


@dataclass(frozen=True, slots=True)
class Suggestion:
    name: str
    changes: tuple[str, ...]
    """As lines of a properties file, or a sentence where it is no setting."""
    why: str
    settings: GroupSettings
    """The group with the changes."""


def window_ms(settings: GroupSettings) -> int:
    """From the first try of a rebalance to its last."""
    return (settings.retries - 1) * settings.backoff_ms


def needed_ms(settings: GroupSettings) -> int:
    """How long a dead member's session can be in the way."""
    return settings.session_timeout_ms + settings.tick_ms


def outlasts(settings: GroupSettings) -> bool:
    return window_ms(settings) > needed_ms(settings)


def retries_needed(settings: GroupSettings) -> int:
    """The fewest tries that outlast a dead session, with the same back-off."""
    return needed_ms(settings) // max(1, settings.backoff_ms) + 2


def verdict(settings: GroupSettings) -> str:
    tries = (
        f"{counted(settings.retries, 'try', 'tries')} with {duration(settings.backoff_ms)} between them "
        f"span {duration(window_ms(settings))}"
    )
    dead = f"a killed member's session can stay for {duration(needed_ms(settings))}"
    if outlasts(settings):
        return f"The retries outlast a dead session: {tries}, and {dead}."
    return f"The retries can end too early: {tries}, but {dead}."


def suggest(settings: GroupSettings) -> list[Suggestion]:
    """In the order in which they help."""
    suggestions = []
    enough = replace(settings, retries=max(settings.retries, retries_needed(settings)))
    if not outlasts(settings):
        suggestions.append(
            Suggestion(
                "more retries",
                (f"rebalance.max.retries={enough.retries}",),
                f"{duration(window_ms(enough))} from the first try to the last; it costs nothing, because a "
                "rebalance that succeeds does not use them.",
                enough,
            )
        )
    if settings.session_timeout_ms < LONG_SESSION_MS:
        longer = replace(settings, session_timeout_ms=LONG_SESSION_MS)
        longer = replace(longer, retries=max(settings.retries, retries_needed(longer)))
        suggestions.append(
            Suggestion(
                "longer session",
                (
                    f"zookeeper.session.timeout.ms={longer.session_timeout_ms}",
                    f"rebalance.max.retries={longer.retries}",
                ),
                "Long pauses of garbage collection and of ZooKeeper no longer end sessions. But the "
                "partitions of a killed member wait longer, and the retries must follow.",
                longer,
            )
        )
    if settings.members >= _MANY_MEMBERS:
        fewer = replace(settings, members=(settings.members + 1) // 2, threads=settings.threads * 2)
        suggestions.append(
            Suggestion(
                "fewer consumers",
                (f"{fewer.members} consumers with {fewer.threads} threads each",),
                "Fewer processes start, stop and die, so the group rebalances less often. A rebalance itself "
                "becomes little safer by it.",
                fewer,
            )
        )
    if settings.topics > 1:
        suggestions.append(
            Suggestion(
                "one topic per group",
                (f"{settings.topics} groups instead of one",),
                "A member that fails then stops reading one topic and not all of them, and a change of one "
                "application does not disturb the others.",
                replace(settings, topics=1),
            )
        )
    return suggestions
