"""Key and trust stores: PEM as it is, PKCS12 turned into PEM, JKS refused with the command that converts it.

Which of them a file is, its bytes tell: since Java 9, what is called JKS in a configuration often is PKCS12.
"""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from kelpie.client.client_errors import BadSettings
from kelpie.client.security import Secret

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.serialization.pkcs12 import PKCS12KeyAndCertificates

_JKS = (b"\xfe\xed\xfe\xed", b"\xce\xce\xce\xce")
_KEY = re.compile(rb"-----BEGIN ([A-Z ]*)PRIVATE KEY-----.*?-----END \1PRIVATE KEY-----", re.DOTALL)
_CERTIFICATE = re.compile(rb"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", re.DOTALL)


@dataclass(frozen=True, slots=True)
class OwnKey:
    """Our certificate with those that signed it, and its key, as PEM."""

    certificates: bytes
    key: bytes
    encrypted: bool
    """Whether the key needs a password still."""


def trusted_certificates(path: str, password: Secret | None) -> bytes:
    """The certificates of a trust store, as PEM. Raises BadSettings."""
    setting = "ssl.truststore"
    raw = _read(path, setting)
    if b"-----BEGIN" in raw:
        certificates = _CERTIFICATE.findall(raw)
    else:
        from cryptography.hazmat.primitives.serialization import Encoding  # noqa: PLC0415

        store = _pkcs12(raw, path, password, setting)
        entries = [*([store.cert] if store.cert is not None else []), *store.additional_certs]
        certificates = [entry.certificate.public_bytes(Encoding.PEM) for entry in entries]
    if not certificates:
        raise BadSettings(f"{setting}.location: {path} holds no certificate.")
    return b"\n".join(certificates) + b"\n"


def own_key(path: str, password: Secret | None) -> OwnKey:
    """Certificate and key of a key store. Raises BadSettings."""
    setting = "ssl.keystore"
    raw = _read(path, setting)
    if b"-----BEGIN" in raw:
        return own_key_of_pem(raw, f"{setting}.location: {path}")
    from cryptography.hazmat.primitives.serialization import (  # noqa: PLC0415 - slow to import, seldom needed
        Encoding,
        NoEncryption,
        PrivateFormat,
    )

    store = _pkcs12(raw, path, password, setting)
    if store.key is None or store.cert is None:
        raise BadSettings(f"{setting}.location: {path} holds no key with its certificate.")
    chain = [store.cert, *store.additional_certs]
    return OwnKey(
        b"".join(entry.certificate.public_bytes(Encoding.PEM) for entry in chain),
        store.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()),
        encrypted=False,
    )


def own_key_of_pem(raw: bytes, where: str) -> OwnKey:
    key = _KEY.search(raw)
    certificates = _CERTIFICATE.findall(raw)
    if key is None or not certificates:
        missing = "private key" if key is None else "certificate"
        raise BadSettings(f"{where} holds no {missing} in PEM.")
    encrypted = b"ENCRYPTED" in key[0].partition(b"\n\n")[0]
    return OwnKey(b"\n".join(certificates) + b"\n", key[0] + b"\n", encrypted)


def _read(path: str, setting: str) -> bytes:
    try:
        raw = Path(path).read_bytes()
    except OSError as error:
        raise BadSettings(f"{setting}.location: {path} cannot be read: {error.strerror or error}.") from None
    if raw.startswith(_JKS):
        raise BadSettings(
            f"{setting}.location: {path} is in Java's own format (JKS), which only Java reads. Convert it "
            "with\n"
            f"  keytool -importkeystore -srckeystore {path} -destkeystore {_renamed(path)} -deststoretype "
            "PKCS12\n"
            f"and set {setting}.location to {_renamed(path)} and {setting}.type to PKCS12."
        )
    return raw


def _renamed(path: str) -> str:
    return f"{path.removesuffix('.jks')}.p12"


def _pkcs12(raw: bytes, path: str, password: Secret | None, setting: str) -> "PKCS12KeyAndCertificates":
    from cryptography.hazmat.primitives.serialization.pkcs12 import load_pkcs12  # noqa: PLC0415

    try:
        return load_pkcs12(raw, password.reveal().encode() if password is not None else None)
    except ValueError as error:
        wrong = "the password is wrong, or it is no PKCS12 store"
        why = "the password is missing" if password is None else wrong
        raise BadSettings(
            f"{setting}.location: {path} cannot be opened as PKCS12: {why} ({setting}.password; {error})."
        ) from None
