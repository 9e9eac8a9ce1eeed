r"""From a template to a regular expression whose work grows with the length of a line, and not faster.

Whoever names a group, or causes an error, decides what stands in a log line. An expression that may try every
way to divide a line among several holes takes minutes for one line of some thousand characters. So a template
is cut into stretches: a hole of any length, and the fixed text and the numbers behind it up to the next such
hole. Each stretch is an atomic group: its hole ends where the text behind it is found first, and is never
tried again. The line is gone through once for each stretch.

    Stabilized group {group} generation {generation} with {members} members

    Stabilized group (?>(?P<group>.*?) generation (?P<generation>-?\d{1,19}) with )
                     (?>(?P<members>.*?) members\Z)

That needs text behind every hole but the last: `expression` refuses other templates.
"""

import re
from functools import cache
from itertools import zip_longest

_NUMBER = r"-?\d{1,19}"
"""No more digits than Kafka's numbers have: Python refuses to read a number of thousands of digits."""
_NODE = r"\S+ \(id: -?\d{1,10} rack: .*?\)|Node\(.*?\)|Coordinator\(.*?\)|\S+"
_PARTITION = r"\[[^\]]+,\d{1,9}\]|TopicPartition\(.*?\)|[^\s,]+-\d{1,9}|\S+ \[\d{1,9}\]"
_SHORT = {
    "generation": _NUMBER,
    "offset": _NUMBER,
    "p": r"\d{1,9}",
    "leader_id": r"-?\d{1,9}",
    "limit_ms": r"\d{1,15}",
    "over_ms": r"\d{1,15}",
}
"""Holes that have few characters: to try them again behind a later text costs little."""
_LONG = {
    "node": _NODE,
    "tp": _PARTITION,
    "position": rf"FetchPosition\{{.*\}}|{_NUMBER}",
    "member": r"\S*?",
    "before": r"[\d,]*",
    "after": r"[\d,]*",
}
"""Other holes that have a form. Each is gone through once: no two repetitions in it can share a character."""
_LAST = {"member": r"\S*"}
"""With anything behind it, a hole takes all that its form allows."""
_HOLE = re.compile(r"\{(\*|[a-z_]+)\}")
_ANYTHING = ("…", "{*}")
"""How a template ends behind which anything may stand."""


class NotLinear(ValueError):
    """A template with which the time for a line could grow faster than the line."""


def pieces_of(template: str) -> list[str]:
    """Fixed text and names of holes by turns; a text first, a text last."""
    return _HOLE.split(template.removesuffix("…"))


def trimmed(message: str) -> str:
    """With one of the white spaces at its end at most: it may belong to the text before an empty hole."""
    return message[: len(message.rstrip()) + 1]


@cache
def expression(template: str) -> re.Pattern[str]:
    """Matches a message that has been `trimmed`. Raises NotLinear."""
    check(template)
    ending = _ending(template)
    pieces = _HOLE.split(template.removesuffix(ending))
    regex, is_open = re.escape(pieces[0]), False
    for index in range(1, len(pieces), 2):
        name, behind = pieces[index], re.escape(pieces[index + 1])
        if name not in _SHORT:
            regex += ")(?>" if is_open else "(?>"
            is_open = True
        is_last = bool(ending) and not behind and index + 2 == len(pieces)
        regex += _hole(name, is_last=is_last) + behind
    if not ending:
        regex = (regex.removesuffix(r"\.") + r"\.?" if template.endswith(".") else regex) + r"\s?\Z"
    return re.compile(regex + ")" * is_open, re.DOTALL)


def _hole(name: str, *, is_last: bool) -> str:
    shape = _SHORT.get(name) or _LONG.get(name) or ".*?"
    if is_last:
        shape = _LAST.get(name, ".*" if shape == ".*?" else shape)
    return shape if name == "*" else f"(?P<{name}>{shape})"


def _ending(template: str) -> str:
    return next((end for end in _ANYTHING if template.endswith(end)), "")


def check(template: str) -> None:
    """Raises NotLinear."""
    pieces = _HOLE.split(template.removesuffix(_ending(template)))
    holes, behind = pieces[1::2], pieces[2::2]
    for name, text, following in zip_longest(holes, behind, holes[1:], fillvalue=""):
        if following and not text:
            raise NotLinear(f"No text is between {{{name}}} and {{{following}}} in: {template}")
        if name in _SHORT and text[:1].isdecimal():
            raise NotLinear(f"A digit follows the number {{{name}}} in: {template}")
