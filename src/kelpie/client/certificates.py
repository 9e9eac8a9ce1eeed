"""Until when certificates are valid: the brokers', as TLS shows them, those of authorities, and our own.

Only the certificate of the broker itself is looked at, and that of the authority that signed it, if it is in
the trust store that was given. What the operating system trusts is not ours to renew.
"""

import ssl
from collections.abc import Mapping, Sequence
from typing import Any

from kelpie.client.security import Security
from kelpie.model.time import Instant
from kelpie.observations import Certificate
from kelpie.observations.cluster import AUTHORITY, BROKER, CLIENT

_SHORT = {"commonName": "CN", "organizationName": "O", "organizationalUnitName": "OU"}


def shown_certificates(
    shown: Mapping[str, Any], trusted: Sequence[Mapping[str, Any]], node: int, at: Instant, source: str
) -> list[Certificate]:
    """The certificate of a broker, and that of the authority that signed it, as Python's ssl decodes them.

    Of several authorities with the same name, the one that is valid for the longest time counts.
    """
    rows = [_row(BROKER, shown, at, source, node)]
    signers = [
        _row(AUTHORITY, each, at, source, node)
        for each in trusted
        if each.get("subject") == shown.get("issuer") and each.get("subject") != shown.get("subject")
    ]
    return rows + sorted(signers, key=lambda row: row.not_after)[-1:]


def own_certificates(security: Security, at: Instant) -> list[Certificate]:
    """Our own certificate, if we have one: the first of the key store."""
    tls = security.tls
    if not security.protocol.encrypted or tls is None or tls.certificates is None:
        return []
    from cryptography import x509  # noqa: PLC0415 - slow to import, seldom needed

    try:
        own = x509.load_pem_x509_certificates(tls.certificates)[0]
    except ValueError:
        return []  # OpenSSL has read it, and has more patience with old certificates.
    begins, ends = own.not_valid_before_utc.timestamp(), own.not_valid_after_utc.timestamp()
    subject = own.subject.rfc4514_string()
    return [Certificate(CLIENT, subject, int(begins * 1000), int(ends * 1000), at=at, source="ssl.keystore")]


def _row(holder: str, decoded: Mapping[str, Any], at: Instant, source: str, node: int) -> Certificate:
    return Certificate(
        holder,
        _subject(decoded),
        _milliseconds(decoded["notBefore"]),
        _milliseconds(decoded["notAfter"]),
        node,
        at,
        source,
    )


def _milliseconds(text: str) -> Instant:
    return int(ssl.cert_time_to_seconds(text)) * 1000


def _subject(decoded: Mapping[str, Any]) -> str:
    parts = [f"{_SHORT.get(name, name)}={value}" for rdn in decoded.get("subject", ()) for name, value in rdn]
    names = [value for _, value in decoded.get("subjectAltName", ())]
    return ",".join(parts) or ",".join(names)
