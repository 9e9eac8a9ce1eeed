"""Which names a topic may have."""

import re
from collections.abc import Collection
from itertools import product

from kelpie.broker.declined import Declined
from kelpie.errors import ErrorCode

_LEGAL = re.compile(r"[a-zA-Z0-9._-]+")
LONGEST = 249


def problem(name: str) -> str | None:
    """Why a topic cannot have this name: a sentence as Kafka's, or None."""
    if not name:
        return "Topic name is invalid: the empty string is not allowed"
    if name in (".", ".."):
        return f"Topic name is invalid: '{name}' is not allowed"
    if len(name) > LONGEST:
        return (
            f"Topic name is invalid: the length of '{name}' is longer than the max allowed length {LONGEST}"
        )
    if not _LEGAL.fullmatch(name):
        return (
            f"Topic name is invalid: '{name}' contains one or more characters other than ASCII "
            "alphanumerics, '.', '_' and '-'"
        )
    return None


def check(name: str, existing: Collection[str]) -> None:
    reason = problem(name)
    if reason:
        raise Declined(ErrorCode.INVALID_TOPIC_EXCEPTION, reason)
    if name in existing:
        raise Declined(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")
    other = _colliding(name, existing)
    if other is not None:
        raise Declined(
            ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic '{name}' collides with existing topic: {other}"
        )


def _colliding(name: str, existing: Collection[str]) -> str | None:
    """Metrics replace dots by underscores, so two names that differ only in these would meet.

    Either all names are tried that would meet this one, or all that exist, whichever are fewer: a request may
    create 10,000 topics.
    """
    flat = name.replace(".", "_")
    parts = flat.split("_")
    if 2 ** (len(parts) - 1) > len(existing):
        return next((other for other in existing if other.replace(".", "_") == flat), None)
    for signs in product("._", repeat=len(parts) - 1):
        other = parts[0] + "".join(sign + part for sign, part in zip(signs, parts[1:], strict=True))
        if other in existing:
            return other
    return None
