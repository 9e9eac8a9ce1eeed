"""Client settings from a properties file, as Kafka's own tools take it with --command-config.

Keys that mean nothing to a client like this are ignored, as Kafka does, and listed in `Settings.ignored`, as
are values that cannot be had.
Where Kafka has a default, it is Kafka's, save the time limits: a doctor does not wait half a minute for one
answer.
"""

import re
from collections.abc import Mapping
from pathlib import Path

from kelpie.client import java_properties
from kelpie.client.address import Address
from kelpie.client.client_errors import BadSettings
from kelpie.client.java_properties import Properties
from kelpie.client.login import parse_jaas, sasl_of
from kelpie.client.security import Protocol, Security, Tls
from kelpie.client.settings import Settings
from kelpie.client.stores import OwnKey, own_key, own_key_of_pem, trusted_certificates
from kelpie.client.tls_offer import PROTOCOLS, SUITES, offer_of


def read_settings(path: str | Path | None = None, bootstrap: str | None = None) -> Settings:
    """Settings from a file; `bootstrap`, from a command line, wins over the file's. Raises BadSettings."""
    if path is None:
        return settings_of({}, bootstrap)
    try:
        raw = Path(path).read_bytes()
    except OSError as error:
        raise BadSettings(f"The properties file {path} cannot be read: {error.strerror or error}.") from None
    return settings_of(java_properties.parse(raw, str(path)), bootstrap)


def settings_of(properties: Mapping[str, str], bootstrap: str | None = None) -> Settings:
    """The same, from keys and values."""
    left = Properties(properties)
    servers = left.take("bootstrap.servers")
    if bootstrap is None:
        bootstrap = servers
    if bootstrap is None:
        raise BadSettings(
            "No broker is named: give its address, or set bootstrap.servers in the properties file."
        )
    client_id = left.take("client.id") or "kelpie"
    security = _security(left)
    request = _seconds(left, "request.timeout.ms", 5.0)
    connect = _seconds(left, "socket.connection.setup.timeout.ms", min(3.0, request))
    return Settings(Address.parse_list(bootstrap), client_id, security, request, connect, left.rest)


def _security(left: Properties) -> Security:
    name = (left.take("security.protocol") or "PLAINTEXT").strip().upper()
    try:
        protocol = Protocol(name)
    except ValueError:
        known = ", ".join(each.value for each in Protocol)
        raise BadSettings(f"security.protocol {name!r} does not exist; there are {known}.") from None
    tls = _tls(left) if protocol.encrypted else None
    sasl = None
    if protocol.authenticated:
        config = left.take("sasl.jaas.config")
        if config is None:
            raise BadSettings(
                f"security.protocol is {protocol.value}, so sasl.jaas.config must say who you are: a line "
                "like org.apache.kafka.common.security.plain.PlainLoginModule required "
                'username="…" password="…";'
            )
        mechanism = left.take("sasl.mechanism") or "GSSAPI"
        sasl = sasl_of(mechanism.strip().upper(), parse_jaas(config), left)
    return Security(protocol, tls, sasl)


def _tls(left: Properties) -> Tls:
    check = left.take("ssl.endpoint.identification.algorithm")
    store = _own_key(left)
    key_password = left.secret("ssl.key.password")
    if store is not None and store.encrypted and key_password is None:
        raise BadSettings("The key in ssl.keystore is encrypted: set ssl.key.password.")
    offer = offer_of(left.take(PROTOCOLS), left.take(SUITES))
    left.note_unused(offer.unused)
    return Tls(
        authorities=_authorities(left),
        certificates=store.certificates if store is not None else None,
        key=store.key if store is not None else None,
        key_password=key_password if store is not None and store.encrypted else None,
        check_host=check is None or bool(check.strip()),
        versions=offer.versions,
        ciphers=offer.ciphers,
    )


def _authorities(left: Properties) -> bytes | None:
    left.take("ssl.truststore.type")
    location, password = left.take("ssl.truststore.location"), left.secret("ssl.truststore.password")
    inline = left.take("ssl.truststore.certificates")
    if inline is not None:
        if location is not None:
            raise BadSettings(
                "ssl.truststore.certificates and ssl.truststore.location are both set; one is enough."
            )
        return _as_pem(inline)
    return trusted_certificates(location, password) if location else None


def _own_key(left: Properties) -> OwnKey | None:
    left.take("ssl.keystore.type")
    location, password = left.take("ssl.keystore.location"), left.secret("ssl.keystore.password")
    key, chain = left.take("ssl.keystore.key"), left.take("ssl.keystore.certificate.chain")
    if key is not None or chain is not None:
        if location is not None:
            raise BadSettings("ssl.keystore.key and ssl.keystore.location are both set; one is enough.")
        if key is None or chain is None:
            raise BadSettings(
                "ssl.keystore.key and ssl.keystore.certificate.chain belong together; one is missing."
            )
        pem = _as_pem(key) + b"\n" + _as_pem(chain)
        return own_key_of_pem(pem, "ssl.keystore.key and ssl.keystore.certificate.chain")
    return own_key(location, password) if location else None


def _as_pem(value: str) -> bytes:
    """PEM in a property may stand on one line, with blanks for line breaks."""
    parts = re.split(r"(-----(?:BEGIN|END) [A-Z ]+-----)", value.strip())
    return "\n".join(
        "\n".join(part.split()) if at % 2 == 0 else part for at, part in enumerate(parts)
    ).encode()


def _seconds(left: Properties, key: str, default: float) -> float:
    value = left.take(key)
    if value is None:
        return default
    try:
        seconds = int(value.strip()) / 1000
    except ValueError:
        seconds = 0.0
    if seconds <= 0:
        raise BadSettings(f"{key} must be a number of milliseconds above 0, not {value.strip()!r}.")
    return seconds
