"""OpenSSL takes a certificate and its key from a file only. No key lies on a disk for that, unless encrypted.

On Linux the file is memory that has no name. Elsewhere it is a file in a folder that only we may enter, with
the key encrypted by a password that nobody has but this process; it is gone when it has been read.
"""

import os
import secrets
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO


@contextmanager
def key_file(key: bytes, certificates: bytes, password: str) -> Iterator[tuple[str, str]]:
    """The path of a file with both, as PEM, and the password that opens it.

    `password` opens the key as it is given; "" if it is not encrypted. Raises ValueError if it does not.
    """
    in_memory = _file_in_memory()
    if in_memory is not None:
        with in_memory:
            in_memory.write(key + b"\n" + certificates)
            in_memory.flush()
            yield _place(in_memory), password
        return
    passphrase = secrets.token_urlsafe(32)
    with tempfile.TemporaryDirectory(prefix="kelpie-") as folder:  # 0700
        path = Path(folder) / "key.pem"
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "wb") as file:
            file.write(_encrypted(key, password, passphrase) + b"\n" + certificates)
        yield str(path), passphrase


def _file_in_memory() -> IO[bytes] | None:
    """None where the system has no such files."""
    if not hasattr(os, "memfd_create"):
        return None
    try:
        file = os.fdopen(os.memfd_create("kelpie", os.MFD_CLOEXEC), "wb")
    except OSError:
        return None
    if os.path.exists(_place(file)):
        return file
    file.close()
    return None


def _place(file: IO[bytes]) -> str:
    return f"/proc/self/fd/{file.fileno()}"


def _encrypted(key: bytes, password: str, passphrase: str) -> bytes:
    from cryptography.hazmat.primitives.serialization import (  # noqa: PLC0415 - slow to import, seldom needed
        BestAvailableEncryption,
        Encoding,
        PrivateFormat,
        load_pem_private_key,
    )

    opened = load_pem_private_key(key, password.encode() if password else None)
    return opened.private_bytes(
        Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(passphrase.encode())
    )
