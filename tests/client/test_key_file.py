"""The client's own key on its way to OpenSSL: never readable on a disk."""

import os
import ssl
import stat
import tempfile
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption
from cryptography.hazmat.primitives.serialization.pkcs12 import serialize_key_and_certificates

from kelpie.client.client_errors import BadSettings
from kelpie.client.properties import settings_of
from kelpie.client.security import Secret, Tls
from kelpie.client.tls import make_context
from tests.client.certificates import signed

PASSWORD = "changeit"


class _Spy:
    """What OpenSSL was given: the path, the file's content, its modes, the password."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        real = ssl.SSLContext.load_cert_chain

        def load(context: ssl.SSLContext, path: str, password: str) -> None:
            self.path, self.password = path, password
            self.content = Path(path).read_bytes()
            self.modes = tuple(stat.S_IMODE(os.stat(it).st_mode) for it in (path, os.path.dirname(path)))
            real(context, path, password=password)

        monkeypatch.setattr(ssl.SSLContext, "load_cert_chain", load)


def _pkcs12(folder: Path) -> Tls:
    identity = signed("client")
    store = serialize_key_and_certificates(
        b"client", identity.key, identity.certificate, None, BestAvailableEncryption(PASSWORD.encode())
    )
    (folder / "client.p12").write_bytes(store)
    properties = {
        "security.protocol": "SSL",
        "ssl.keystore.location": str(folder / "client.p12"),
        "ssl.keystore.password": PASSWORD,
    }
    tls = settings_of(properties, "a:1").security.tls
    assert tls is not None
    return tls


def _no_folder(*_: Any, **__: Any) -> Any:
    raise AssertionError("a file was written")


def test_on_linux_a_key_of_pkcs12_is_on_no_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file that OpenSSL reads is memory without a name."""
    tls, spy = _pkcs12(tmp_path), _Spy(monkeypatch)
    monkeypatch.setattr(tempfile, "mkdtemp", _no_folder)
    monkeypatch.setattr(tempfile, "mkstemp", _no_folder)
    before = set(os.listdir("/proc/self/fd"))
    make_context(tls)
    assert spy.path.startswith("/proc/self/fd/")
    assert set(os.listdir("/proc/self/fd")) <= before | {spy.path.rpartition("/")[2]}
    assert not os.path.exists(spy.path) or "memfd" not in os.readlink(spy.path)


@pytest.mark.parametrize("key_password", [None, PASSWORD])
def test_elsewhere_the_file_holds_an_encrypted_key(
    key_password: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For a moment, in a folder that only we may enter; the password is made for this file."""
    monkeypatch.delattr(os, "memfd_create")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    spy, identity = _Spy(monkeypatch), signed("client")
    key = identity.key_pem(key_password)
    secret = Secret(key_password) if key_password else None
    make_context(Tls(certificates=identity.certificate_pem, key=key, key_password=secret))
    assert b"BEGIN ENCRYPTED PRIVATE KEY" in spy.content
    assert key not in spy.content
    assert spy.password not in ("", PASSWORD)
    assert spy.modes == (0o600, 0o700)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("in_memory", [True, False])
@pytest.mark.parametrize("wrong", ["", "not-it"])
def test_a_wrong_password_of_the_key_is_a_bad_setting(
    in_memory: bool, wrong: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file is gone all the same."""
    if not in_memory:
        monkeypatch.delattr(os, "memfd_create")
    identity = signed("client")
    tls = Tls(
        certificates=identity.certificate_pem, key=identity.key_pem(PASSWORD), key_password=Secret(wrong)
    )
    with pytest.raises(BadSettings, match="own certificate and key cannot be used"):
        make_context(tls)
