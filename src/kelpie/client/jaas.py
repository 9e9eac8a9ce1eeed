"""sasl.jaas.config: a login module, a flag, and options.

org.apache.kafka.common.security.plain.PlainLoginModule required username="alice" password="secret";
"""

import re
from dataclasses import dataclass, field
from typing import NoReturn

from kelpie.client.client_errors import BadSettings

_FLAGS = {"required", "requisite", "sufficient", "optional"}
_TOKEN = re.compile(
    r"""(?P<blank>\s+|//[^\n]*|/\*.*?\*/)
    |"(?P<double>(?:\\.|[^"\\])*)"
    |'(?P<single>(?:\\.|[^'\\])*)'
    |(?P<sign>[=;])
    |(?P<word>[^\s=;"']+)""",
    re.VERBOSE | re.DOTALL,
)
_OCTAL_OR_SIGN = re.compile(r"\\([0-7]{1,3}|.)", re.DOTALL)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "f": "\f", "b": "\b", "a": "\a", "v": "\v"}


@dataclass(frozen=True, slots=True)
class Login:
    module: str
    """The class, without its package."""
    options: dict[str, str] = field(repr=False)


def parse(text: str) -> Login:
    """Raises BadSettings, whose text quotes none of the options."""
    tokens = _tokens(text)
    if len(tokens) < 2:
        _wrong("it should begin with the class of a login module and the word required")
    (module, _), (flag, _) = tokens[:2]
    if flag.lower() not in _FLAGS:
        _wrong(f"behind the class of the login module the word required is missing (there is {flag!r})")
    rest = tokens[2:]
    if not rest or rest[-1] != (";", False):
        _wrong("it does not end with a semicolon")
    rest = rest[:-1]
    if (";", False) in rest:
        _wrong("it holds more than one login module; Kafka takes one")
    options = {}
    for at in range(0, len(rest), 3):
        triple = rest[at : at + 3]
        if len(triple) < 3 or triple[1] != ("=", False):
            _wrong(f'option {at // 3 + 1} is not of the form name="value"')
        options[triple[0][0]] = triple[2][0]
    return Login(module.rpartition(".")[2], options)


def _tokens(text: str) -> list[tuple[str, bool]]:
    """The tokens, and whether each was quoted."""
    tokens: list[tuple[str, bool]] = []
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            _wrong("a quotation mark is not closed")
        at = match.end()
        quoted = match["double"] if match["double"] is not None else match["single"]
        if quoted is not None:
            tokens.append((_OCTAL_OR_SIGN.sub(_unescape, quoted), True))
        elif match["blank"] is None:
            tokens.append((match["sign"] or match["word"], False))
    return tokens


def _unescape(match: re.Match[str]) -> str:
    sign = match[1]
    return chr(int(sign, 8)) if sign.isdigit() else _ESCAPES.get(sign, sign)


def _wrong(why: str) -> NoReturn:
    raise BadSettings(f"sasl.jaas.config cannot be read: {why}.")
