"""Files as `htpasswd -B` writes them, and those that are refused."""

import os
from pathlib import Path

import bcrypt
import pytest

from kelpie.web.access.passwords import BadPasswords, CheckedBefore, PasswordFile

APACHE = "$2y$04$eImiTXuWVxfM37uY4JANjOL.QNqiDCXRjjSFdJx6pL/lZhKvjrYzK"
"""A hash in the spelling of htpasswd, which calls itself 2y; of no known password."""


def hashed(password: str, cost: int = 4) -> str:
    return bcrypt.hashpw(password.encode()[:72], bcrypt.gensalt(cost)).decode()


def a_file(folder: Path, *lines: str, mode: int = 0o600) -> Path:
    path = folder / "passwords"
    path.write_text("".join(f"{line}\n" for line in lines))
    path.chmod(mode)
    return path


def test_the_right_password_is_known(tmp_path: Path) -> None:
    spelled_2y = hashed("Grüße, 世界").replace("$2b$", "$2y$")
    lines = ("# people", f"anna:{spelled_2y}", "", f"bo b:{hashed('x')}:a remark")
    file = PasswordFile(a_file(tmp_path, *lines))
    assert file.check("anna", "Grüße, 世界")
    assert not file.check("anna", "Grüße, 世")
    assert not file.check("anna", "")
    assert file.check("bo b", "x")
    assert not file.check("bo b", "x\0y")
    assert not file.check("bo b", "x\0")
    assert not file.check("nobody", "x")
    assert not file.check("", "")


def test_what_htpasswd_cuts_off_does_not_count(tmp_path: Path) -> None:
    """bcrypt reads 72 bytes; a longer password must not end in an error."""
    file = PasswordFile(a_file(tmp_path, f"anna:{hashed('a' * 100)}"))
    assert file.check("anna", "a" * 100)
    assert not file.check("anna", "a" * 71)


def test_a_name_that_is_not_known_takes_as_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise the time would tell who may log in. The highest cost in the file counts."""
    file = PasswordFile(a_file(tmp_path, f"anna:{hashed('x', 5)}", f"bob:{hashed('x', 4)}"))
    costs: list[bytes] = []
    compare = bcrypt.checkpw

    def check(password: bytes, against: bytes) -> bool:
        costs.append(against[4:6])
        return compare(password, against)

    monkeypatch.setattr(bcrypt, "checkpw", check)
    assert not file.check("anna", "wrong")
    assert not file.check("nobody", "wrong")
    assert costs == [b"05", b"05"]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("anna:$apr1$abcdefgh$0123456789012345678901", "MD5 as Apache"),
        ("anna:{SHA}W6ph5Mm5Pz8GgiULbPgzG37mj9g=", "SHA-1"),
        ("anna:$6$salt$hash", "SHA-512"),
        ("anna:$argon2id$v=19$m=65536", "Argon2"),
        ("anna:secret", "not known"),
        ("anna:$2y$10$tooshort", "damaged"),
        ("anna:", "not known"),
        ("anna", "line 1: it is not NAME:HASH"),
        (f":{APACHE}", "line 1: it is not NAME:HASH"),
        (f"an\x1bna:{APACHE}", "do not show"),
        (f"anna:{APACHE.replace('$04$', '$31$')}", "cost 31"),
        (f"anna:{APACHE.replace('$04$', '$03$')}", "cost 3"),
        ("# nobody", "names nobody"),
    ],
)
def test_a_file_of_another_kind_is_refused(tmp_path: Path, line: str, said: str) -> None:
    """With what to do; what stands in the place of the hash is never repeated."""
    with pytest.raises(BadPasswords) as refused:
        PasswordFile(a_file(tmp_path, line))
    assert said in str(refused.value)
    rest = line.partition(":")[2]
    assert not rest or rest not in str(refused.value)


def test_a_name_stands_in_a_file_once(tmp_path: Path) -> None:
    with pytest.raises(BadPasswords, match="line 2: anna is in an earlier line"):
        PasswordFile(a_file(tmp_path, f"anna:{APACHE}", f"anna:{APACHE}"))


@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666])
def test_a_file_that_others_may_write_to_is_refused(tmp_path: Path, mode: int) -> None:
    with pytest.raises(BadPasswords, match=r"can be written by others .*chmod 600"):
        PasswordFile(a_file(tmp_path, f"anna:{APACHE}", mode=mode))


def test_a_file_in_a_folder_of_others_is_refused(tmp_path: Path) -> None:
    """Whoever may write to the folder can put another file in its place."""
    folder = tmp_path / "shared"
    folder.mkdir()
    path = a_file(folder, f"anna:{APACHE}")
    folder.chmod(0o777)
    with pytest.raises(BadPasswords, match="in the place of passwords"):
        PasswordFile(path)
    folder.chmod(0o1777)
    PasswordFile(path)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_file_of_another_user_is_refused(tmp_path: Path) -> None:
    path = a_file(tmp_path, f"anna:{APACHE}")
    os.chown(path, 12345, -1)
    with pytest.raises(BadPasswords, match="belongs to another user"):
        PasswordFile(path)


@pytest.mark.parametrize("content", [b"\xff\xfe", b"x" * 1_000_001])
def test_what_is_no_text_is_refused(tmp_path: Path, content: bytes) -> None:
    path = a_file(tmp_path)
    path.write_bytes(content)
    with pytest.raises(BadPasswords):
        PasswordFile(path)
    with pytest.raises(BadPasswords, match=r"is no file|cannot be read"):
        PasswordFile(tmp_path)
    with pytest.raises(BadPasswords, match="cannot be read"):
        PasswordFile(tmp_path / "missing")


def test_a_changed_file_counts_at_once(tmp_path: Path) -> None:
    """A person who is removed is out without a restart, and so is everybody if the file goes bad."""
    told: list[str] = []
    path = a_file(tmp_path, f"anna:{hashed('x')}", f"bob:{hashed('y')}")
    file = PasswordFile(path, told.append)
    before = file.mark("anna")
    assert before
    assert file.check("bob", "y")
    a_file(tmp_path, f"anna:{hashed('new')}")
    assert not file.check("bob", "y")
    assert file.mark("bob") == ""
    assert file.mark("anna") not in ("", before)
    path.chmod(0o666)
    assert not file.check("anna", "new")
    assert not file.check("anna", "new")
    assert len(told) == 1
    assert told[0].startswith("Nobody can log in. ")
    path.chmod(0o600)
    assert file.check("anna", "new")
    path.unlink()
    assert not file.knows("anna")
    assert len(told) == 2


def test_a_password_that_was_right_is_remembered_for_a_while() -> None:
    """bcrypt at each request of Prometheus would keep a core busy. A new password ends it."""
    before = CheckedBefore(most=2, life_s=10)
    before.add("anna", "x", "mark", now_s=0)
    assert before.has("anna", "x", "mark", now_s=9)
    assert not before.has("anna", "y", "mark", now_s=9)
    assert not before.has("anna", "x", "other", now_s=9)
    assert not before.has("anna", "x", "mark", now_s=10)
    assert not before.has("anna\0x", "", "mark", now_s=0)
    for name in ("b", "c"):
        before.add(name, "x", "mark", now_s=0)
    assert not before.has("anna", "x", "mark", now_s=0)
