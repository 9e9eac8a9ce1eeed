"""Which versions of TLS and which cipher suites are offered: ssl.enabled.protocols and ssl.cipher.suites.

Java names suites as their registry does, OpenSSL in its own way. What Python's ssl module cannot do is not
left out in silence: it is among `unused`.
"""

import re
import ssl
from dataclasses import dataclass

from kelpie.client.client_errors import BadSettings

PROTOCOLS, SUITES = "ssl.enabled.protocols", "ssl.cipher.suites"
_SPOKEN = ("TLSv1.2", "TLSv1.3")
_OLDER = ("SSLv2Hello", "SSLv3", "TLSv1", "TLSv1.1")
_SUITES_OF_1_3 = frozenset(
    {
        "TLS_AES_128_GCM_SHA256",
        "TLS_AES_256_GCM_SHA384",
        "TLS_CHACHA20_POLY1305_SHA256",
        "TLS_AES_128_CCM_SHA256",
        "TLS_AES_128_CCM_8_SHA256",
    }
)
_OFFERED_OF_1_3 = frozenset(name for name in _SUITES_OF_1_3 if "CCM" not in name)
"""What OpenSSL offers, and Python cannot choose among."""


@dataclass(frozen=True, slots=True)
class Offer:
    versions: tuple[str, ...] = ()
    """Of "TLSv1.2" and "TLSv1.3"; empty for both."""
    ciphers: tuple[str, ...] = ()
    """Suites of TLSv1.2, by OpenSSL's names; empty for OpenSSL's choice."""
    unused: tuple[str, ...] = ()
    """What of the settings has no effect here: "ssl.enabled.protocols: TLSv1.1"."""


def offer_of(protocols: str | None, suites: str | None) -> Offer:
    """Raises BadSettings if nothing would be left to offer."""
    versions, old = _versions(_listed(protocols))
    ciphers, wanted_of_1_3, unknown = _ciphers(_listed(suites))
    unused = [f"{PROTOCOLS}: {name}" for name in old] + [f"{SUITES}: {name}" for name in unknown]
    if suites is not None and _listed(suites):
        having = {"TLSv1.2": bool(ciphers), "TLSv1.3": bool(wanted_of_1_3)}
        versions = tuple(version for version in versions or _SPOKEN if having[version])
        if not versions:
            raise BadSettings(
                f"{SUITES} holds no suite that Kelpie can offer with the versions of {PROTOCOLS}: "
                f"{', '.join(_listed(suites))}."
            )
        if "TLSv1.3" in versions and wanted_of_1_3 != _OFFERED_OF_1_3:
            unused.append(f"{SUITES}: the choice among suites of TLSv1.3")
    return Offer(versions, ciphers, tuple(unused))


def restrict(context: ssl.SSLContext, versions: tuple[str, ...], ciphers: tuple[str, ...]) -> None:
    """Has the context offer these and nothing else."""
    if versions:
        context.minimum_version = _VERSIONS[min(versions)]
        context.maximum_version = _VERSIONS[max(versions)]
    if ciphers:
        context.set_ciphers(":".join(ciphers))


_VERSIONS = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}


def _listed(value: str | None) -> list[str]:
    return [part.strip() for part in (value or "").split(",") if part.strip()]


def _versions(names: list[str]) -> tuple[tuple[str, ...], list[str]]:
    """Those that are spoken, and those that are too old."""
    known = {name.lower(): name for name in (*_SPOKEN, *_OLDER)}
    wrong = [name for name in names if name.lower() not in known]
    if wrong:
        raise BadSettings(f"{PROTOCOLS}: there is no {', '.join(wrong)}; Kelpie speaks TLSv1.2 and TLSv1.3.")
    given = {known[name.lower()] for name in names}
    versions = tuple(version for version in _SPOKEN if version in given)
    if names and not versions:
        raise BadSettings(f"{PROTOCOLS} allows {', '.join(names)} only; Kelpie speaks TLSv1.2 and TLSv1.3.")
    return versions, [name for name in _OLDER if name in given]


def _ciphers(names: list[str]) -> tuple[tuple[str, ...], frozenset[str], list[str]]:
    """Suites of TLSv1.2 by OpenSSL's names, suites of TLSv1.3, and those that are not known here."""
    of_1_3 = frozenset(name for name in names if name in _SUITES_OF_1_3)
    ciphers, unknown = [], []
    for name in names:
        if name in of_1_3:
            continue
        cipher = openssl_name(name)
        if _is_known(cipher):
            ciphers.append(cipher)
        else:
            unknown.append(name)
    return tuple(ciphers), of_1_3, unknown


def openssl_name(suite: str) -> str:
    """TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384 is ECDHE-RSA-AES256-GCM-SHA384."""
    exchange, found, cipher = suite.removeprefix("TLS_").partition("_WITH_")
    if not found:
        return suite
    cipher = re.sub(r"^(AES|ARIA|CAMELLIA)_(\d+)_", r"\1\2-", cipher).replace("-CBC_", "-")
    cipher = "CHACHA20-POLY1305" if cipher.startswith("CHACHA20_POLY1305") else cipher
    own = "" if exchange == "RSA" else f"{exchange}-"
    return f"{own}{cipher}".replace("_", "-")


def _is_known(cipher: str) -> bool:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    try:
        context.set_ciphers(cipher)
    except ssl.SSLError:
        return False
    # OpenSSL's lists have words of their own, such as ALL.
    return cipher in (known["name"] for known in context.get_ciphers())
