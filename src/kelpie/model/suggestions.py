"""What a mistyped word may have meant."""

from collections.abc import Iterable

from kelpie.model.words import listed

_MOST = 3


def near(word: str, known: Iterable[str]) -> list[str]:
    """Those that are spelt alike, the likeliest first; else those that begin with it."""
    from difflib import get_close_matches  # noqa: PLC0415 - only for mistakes.

    names = list(dict.fromkeys(known))
    by_lower = {name.lower(): name for name in names}
    found = get_close_matches(word.lower(), by_lower, _MOST, 0.65)
    if not found and word:
        found = [lower for lower in by_lower if lower.startswith(word.lower())][:_MOST]
    return [by_lower[lower] for lower in found]


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A sentence and a space behind it; empty if nothing is near."""
    found = near(word, known)
    return f"Did you mean {listed(found, 'or')}? " if found else ""
