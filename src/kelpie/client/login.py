"""From sasl.mechanism and sasl.jaas.config to what a login needs."""

from urllib.parse import urlsplit
from urllib.request import url2pathname

from kelpie.client.client_errors import BadSettings
from kelpie.client.jaas import Login
from kelpie.client.java_properties import Properties
from kelpie.client.security import MECHANISMS, Sasl, Secret, Tls, TokenSource
from kelpie.client.stores import trusted_certificates

_MODULES = {
    "PLAIN": "PlainLoginModule",
    "SCRAM-SHA-256": "ScramLoginModule",
    "SCRAM-SHA-512": "ScramLoginModule",
    "OAUTHBEARER": "OAuthBearerLoginModule",
}


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
