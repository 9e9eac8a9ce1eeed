"""How a connection is secured: the listener's protocol, TLS, and who we are.

Passwords and tokens are `Secret`: they show in no repr, no log and no error.
"""

from dataclasses import dataclass, field
from enum import Enum


@dataclass(frozen=True, slots=True, repr=False)
class Secret:
    """A text that is never shown by accident."""

    _text: str

    def reveal(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return "Secret(…)"


class Protocol(Enum):
    """The values of security.protocol."""

    PLAINTEXT = "PLAINTEXT"
    SSL = "SSL"
    SASL_PLAINTEXT = "SASL_PLAINTEXT"
    SASL_SSL = "SASL_SSL"

    @property
    def encrypted(self) -> bool:
        return self in (Protocol.SSL, Protocol.SASL_SSL)

    @property
    def authenticated(self) -> bool:
        return self in (Protocol.SASL_PLAINTEXT, Protocol.SASL_SSL)


@dataclass(frozen=True, slots=True)
class Tls:
    """Whom to trust, and who we are, as PEM. Without authorities, those of the operating system count."""

    authorities: bytes | None = None
    certificates: bytes | None = None
    """Our own certificate, followed by those that signed it."""
    key: bytes | None = field(default=None, repr=False)
    key_password: Secret | None = None
    check_host: bool = True
    versions: tuple[str, ...] = ()
    """Of "TLSv1.2" and "TLSv1.3", the versions to offer; empty for both."""
    ciphers: tuple[str, ...] = ()
    """Suites of TLSv1.2 to offer, by OpenSSL's names; empty for OpenSSL's choice."""


MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")


@dataclass(frozen=True, slots=True)
class Sasl:
    """One of `MECHANISMS`, and what it needs."""

    mechanism: str
    username: str = ""
    password: Secret | None = None
    token: "TokenSource | None" = None
    from_token: bool = False
    """SCRAM with a delegation token: user name and password are its id and HMAC."""


@dataclass(frozen=True, slots=True)
class TokenSource:
    """Where OAUTHBEARER's tokens come from: the first of these that is set.

    A token or a file that holds one; an endpoint that gives one for client credentials; or, as Kafka's own
    login module does for tests, claims of ours that nobody has signed.
    """

    token: Secret | None = None
    file: str | None = None
    endpoint: str | None = None
    client_id: str = ""
    client_secret: Secret | None = None
    scope: str | None = None
    tls: Tls | None = None
    """For an https endpoint; the system's authorities if left out."""
    subject: str | None = None
    claims: tuple[tuple[str, object], ...] = ()
    """Further claims of an unsigned token."""
    extensions: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Security:
    protocol: Protocol = Protocol.PLAINTEXT
    tls: Tls | None = None
    sasl: Sasl | None = None


PLAINTEXT = Security()
