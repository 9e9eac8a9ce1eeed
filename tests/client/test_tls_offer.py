"""ssl.enabled.protocols and ssl.cipher.suites are honoured, and what of them cannot be is told."""

import ssl

import pytest

from kelpie.client.client_errors import BadSettings
from kelpie.client.properties import settings_of
from kelpie.client.settings import Settings
from kelpie.client.tls import make_context
from kelpie.client.tls_offer import offer_of, openssl_name

BOTH = ("TLSv1.2", "TLSv1.3")
ECDHE = "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384"


def _settings(**ssl_settings: str) -> Settings:
    given = {f"ssl.{key.replace('_', '.')}": value for key, value in ssl_settings.items()}
    return settings_of({"security.protocol": "SSL", **given}, "a:1")


def _context(settings: Settings) -> ssl.SSLContext:
    assert settings.security.tls is not None
    return make_context(settings.security.tls)


@pytest.mark.parametrize(
    ("protocols", "versions", "unused"),
    [
        ("TLSv1.3", ("TLSv1.3",), ()),
        ("TLSv1.2", ("TLSv1.2",), ()),
        ("TLSv1.2,TLSv1.3", BOTH, ()),
        (" tlsv1.3 , TLSv1.1,TLSv1", ("TLSv1.3",), ("TLSv1", "TLSv1.1")),
        ("", (), ()),
    ],
)
def test_only_the_versions_that_are_enabled_are_offered(
    protocols: str, versions: tuple[str, ...], unused: tuple[str, ...]
) -> None:
    """A person who forbids TLSv1.2 must not get it without a word."""
    settings = _settings(enabled_protocols=protocols)
    assert settings.ignored == tuple(f"ssl.enabled.protocols: {name}" for name in unused)
    context = _context(settings)
    if versions:
        assert context.minimum_version.name == min(versions).replace(".", "_")
        assert context.maximum_version.name == max(versions).replace(".", "_")


def test_suites_of_1_2_are_offered_and_no_others() -> None:
    """Named as Java names them. None of TLSv1.3 is among them, so that version is not offered."""
    settings = _settings(cipher_suites=f"{ECDHE}, TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256")
    context = _context(settings)
    assert settings.ignored == ()
    offered = [cipher["name"] for cipher in context.get_ciphers() if cipher["protocol"] != "TLSv1.3"]
    assert offered == ["ECDHE-RSA-AES256-GCM-SHA384", "ECDHE-ECDSA-CHACHA20-POLY1305"]
    assert context.maximum_version is ssl.TLSVersion.TLSv1_2


def test_what_cannot_be_chosen_or_is_not_known_is_told() -> None:
    """Python offers all suites of TLSv1.3 or none of them."""
    settings = _settings(cipher_suites=f"TLS_AES_256_GCM_SHA384,{ECDHE},TLS_NULL_WITH_MADE_UP,ALL")
    assert settings.ignored == (
        "ssl.cipher.suites: TLS_NULL_WITH_MADE_UP",
        "ssl.cipher.suites: ALL",
        "ssl.cipher.suites: the choice among suites of TLSv1.3",
    )
    assert offer_of(None, "TLS_AES_256_GCM_SHA384").versions == ("TLSv1.3",)
    every = "TLS_AES_256_GCM_SHA384,TLS_CHACHA20_POLY1305_SHA256,TLS_AES_128_GCM_SHA256"
    assert offer_of(None, every).unused == ()


@pytest.mark.parametrize(
    ("protocols", "suites", "complaint"),
    [
        ("TLSv1.4", None, "there is no TLSv1.4"),
        ("TLSv1.1,SSLv3", None, "allows TLSv1.1, SSLv3 only"),
        (None, "MADE_UP", "no suite that Kelpie can offer"),
        ("TLSv1.3", ECDHE, "no suite that Kelpie can offer"),
        (None, "ALL:@SECLEVEL=0", "no suite that Kelpie can offer"),
    ],
)
def test_nothing_is_left_to_offer(protocols: str | None, suites: str | None, complaint: str) -> None:
    """Rather than offer what was not allowed."""
    with pytest.raises(BadSettings, match=complaint):
        offer_of(protocols, suites)


def test_names_of_suites() -> None:
    """The registry's, and OpenSSL's."""
    assert openssl_name(ECDHE) == "ECDHE-RSA-AES256-GCM-SHA384"
    assert openssl_name("TLS_DHE_RSA_WITH_AES_128_CBC_SHA256") == "DHE-RSA-AES128-SHA256"
    assert openssl_name("TLS_RSA_WITH_AES_128_CBC_SHA") == "AES128-SHA"
    assert openssl_name("TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256") == "ECDHE-RSA-CHACHA20-POLY1305"


def test_without_these_settings_nothing_is_restricted() -> None:
    """OpenSSL's own choice."""
    assert offer_of(None, None) == offer_of("", " ")
    assert _settings().security.tls == _settings(enabled_protocols="").security.tls
