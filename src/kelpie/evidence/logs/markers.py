"""What a line must contain to mean anything: words to search in bytes, before the line is parsed.

Few lines of a log mean anything. A line without any of these words does not change what `log_reader` returns:
no template fits it, and it names no group, no version, no settings. Some words matter only until something is
known (`Why`), which the caller checks again for each line.

JSON may hide a word behind escapes: a line that begins with "{" and contains a backslash must be read. A
line that is too long to be read as a whole must be read, too.
"""

from enum import IntFlag
from functools import cache

from kelpie.evidence.logs import exceptions, librdkafka, log_reader, zookeeper_consumer
from kelpie.evidence.logs.entries import ALONE
from kelpie.evidence.logs.expressions import pieces_of
from kelpie.evidence.logs.matching import Pattern
from kelpie.evidence.logs.times import MOMENTS
from kelpie.evidence.properties import BROKER_DUMP, CONSUMER_DUMP

LONGEST_SURE = zookeeper_consumer.LONGEST_SURE
"""In characters: of a longer message only the beginning and the end are read."""
_SHORTEST = 4


class Why(IntFlag):
    """What a word stands for."""

    MEANS = 1
    """It may mean something."""
    BRACKET = 2
    """It may name a group, and its client, in the bracket before the message."""
    INSTANCE = 4
    """It may name the group of an instance of librdkafka."""
    MOMENT = 8
    """It may show the zone of the file's times."""
    GUESS = 16
    """It may give a group away, if none has been named so far."""


BRACKETED = "groupId="
_EVERYWHERE = ("Response ",)
"""Parts of templates that many lines of clients' logs contain."""


@cache
def markers() -> dict[str, Why]:
    """Words, and why each is of interest."""
    reasons = {
        BRACKETED: Why.BRACKET,
        'Group "': Why.INSTANCE,
        "for group ": Why.GUESS,
    }
    reasons |= dict.fromkeys(MOMENTS, Why.MOMENT)
    words = [_rare_part(pattern) for pattern in log_reader.TABLE.patterns]
    for tag, table in librdkafka.TABLES.items():
        long = [pattern.longest for pattern in table.patterns if len(pattern.longest) >= _SHORTEST]
        words += long if len(long) == len(table.patterns) else [*long, f"|{tag}|", f"{tag} ["]
    words += [*exceptions.NAMES, *ALONE, CONSUMER_DUMP, BROKER_DUMP, "Kafka version"]
    words += [zookeeper_consumer.OVERRIDDEN, zookeeper_consumer.CONNECTING]
    for word in words:
        assert len(word) >= _SHORTEST, f"a template without a word to look for: {word!r}"
        reasons[word] = reasons.get(word, Why(0)) | Why.MEANS
    return reasons


def _rare_part(pattern: Pattern) -> str:
    """The longest fixed part of its template, of those that are not everywhere."""
    if pattern.longest not in _EVERYWHERE:
        return pattern.longest
    return max((part for part in pieces_of(pattern.template)[::2] if part not in _EVERYWHERE), key=len)
