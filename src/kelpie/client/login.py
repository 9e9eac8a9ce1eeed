"""From sasl.mechanism and sasl.jaas.config to what a login needs."""

import re
from dataclasses import dataclass, field
from typing import NoReturn
from urllib.parse import urlsplit
from urllib.request import url2pathname

from kelpie.client.client_errors import BadSettings
from kelpie.client.java_properties import Properties
from kelpie.client.security import MECHANISMS, Sasl, Secret, Tls, TokenSource
from kelpie.client.stores import trusted_certificates

_MODULES = {
    "PLAIN": "PlainLoginModule",
    "SCRAM-SHA-256": "ScramLoginModule",
    "SCRAM-SHA-512": "ScramLoginModule",
    "OAUTHBEARER": "OAuthBearerLoginModule",
}
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


def parse_jaas(text: str) -> Login:
    """Reads sasl.jaas.config: the class of a login module, a flag, options.

    org.apache.kafka.common.security.plain.PlainLoginModule required username="alice" password="secret";

    Raises BadSettings, whose text quotes none of the options.
    """
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


def sasl_of(mechanism: str, login: Login, properties: Properties) -> Sasl:
    """Raises BadSettings."""
    if mechanism not in _MODULES:
        raise BadSettings(
            f"sasl.mechanism {mechanism} is not spoken here; {', '.join(MECHANISMS)} are. (Without "
            "sasl.mechanism, Kafka takes GSSAPI.)"
        )
    if login.module != _MODULES[mechanism]:
        raise BadSettings(
            f"sasl.mechanism is {mechanism}, which goes with {_MODULES[mechanism]}; sasl.jaas.config names "
            f"{login.module}."
        )
    if mechanism == "OAUTHBEARER":
        return Sasl(mechanism, token=_source(login.options, properties))
    username, password = login.options.get("username"), login.options.get("password")
    if username is None or password is None:
        raise BadSettings(f"sasl.jaas.config lacks {'username' if username is None else 'password'}.")
    from_token = login.options.get("tokenauth", "false").strip().lower() == "true"
    return Sasl(mechanism, username, Secret(password), from_token=from_token)


def _source(options: dict[str, str], properties: Properties) -> TokenSource:
    endpoint = properties.take("sasl.oauthbearer.token.endpoint.url")
    client_id = properties.take("sasl.oauthbearer.client.credentials.client.id") or options.get("clientId")
    secret = properties.take("sasl.oauthbearer.client.credentials.client.secret") or options.get(
        "clientSecret"
    )
    scope = properties.take("sasl.oauthbearer.scope") or options.get("scope")
    extensions = tuple(
        (key.removeprefix("extension_"), value)
        for key, value in options.items()
        if key.startswith("extension_")
    )
    if "token" in options:  # Not in Kafka: the shortest way to try a token.
        return TokenSource(token=Secret(options["token"]), extensions=extensions)
    if endpoint is not None:
        where = urlsplit(endpoint)
        if where.scheme == "file":
            return TokenSource(file=url2pathname(where.path), extensions=extensions)
        if client_id is None or secret is None:
            raise BadSettings(
                "sasl.oauthbearer.token.endpoint.url is set, and sasl.jaas.config lacks clientId or "
                "clientSecret."
            )
        return TokenSource(
            endpoint=endpoint,
            client_id=client_id,
            client_secret=Secret(secret),
            scope=scope,
            tls=_endpoint_tls(options),
            extensions=extensions,
        )
    return _unsigned(options, extensions)


def _endpoint_tls(options: dict[str, str]) -> Tls | None:
    location = options.get("ssl.truststore.location")
    if location is None:
        return None
    password = options.get("ssl.truststore.password")
    return Tls(trusted_certificates(location, Secret(password) if password is not None else None))


def _unsigned(options: dict[str, str], extensions: tuple[tuple[str, str], ...]) -> TokenSource:
    """The claims of an unsecured token, by the options of Kafka's OAuthBearerLoginModule."""
    claims: dict[str, object] = {}
    for key, value in options.items():
        kind, underscore, name = key.partition("_")
        if not underscore or name in ("iat", "exp"):
            continue
        if kind == "unsecuredLoginStringClaim":
            claims[name] = value
        elif kind == "unsecuredLoginNumberClaim":
            try:
                claims[name] = float(value) if "." in value else int(value)
            except ValueError:
                raise BadSettings(f"sasl.jaas.config: {key} is not a number.") from None
        elif kind == "unsecuredLoginListClaim":
            claims[name] = value[1:].split(value[:1]) if value else []
    principal = options.get("unsecuredLoginPrincipalClaimName", "sub")
    if not isinstance(claims.get(principal), str):
        raise BadSettings(
            "OAUTHBEARER needs a token: set sasl.oauthbearer.token.endpoint.url, or, for a broker that "
            f"takes tokens without a signature, unsecuredLoginStringClaim_{principal} in sasl.jaas.config."
        )
    return TokenSource(subject=str(claims[principal]), claims=tuple(claims.items()), extensions=extensions)
