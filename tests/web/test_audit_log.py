"""The audit log: lines that stay, whatever names are in them; and files that are not used."""

import json
import os
import stat
from pathlib import Path

import pytest

from kelpie.web.access.addresses import Origin
from kelpie.web.access.operators import Operator
from kelpie.web.audit_log import AuditLog, BadAuditLog

ANNA = Operator("anna", Origin("192.0.2.1", "10.0.0.1"))
HOSTILE = ['a\nb"}\r\n{"event": "forged"}', "\u202eevil\x1b[2J\u2028", "订单", "\ud800", "\x00"]


def test_a_line_says_who_when_what_and_from_where(tmp_path: Path) -> None:
    log = AuditLog(tmp_path / "state" / "audit.jsonl", clock=lambda: 1_800_000_000_000)
    log.note("apply", ANNA, group="billing", plan="abcd")
    log.close()
    text = log.path.read_text()
    assert json.loads(text) == {
        "at": "2027-01-15T08:00:00.000Z",
        "event": "apply",
        "user": "anna",
        "address": "192.0.2.1",
        "via": "10.0.0.1",
        "group": "billing",
        "plan": "abcd",
    }
    assert stat.S_IMODE(log.path.stat().st_mode) == 0o600


@pytest.mark.parametrize("name", HOSTILE)
def test_no_name_ends_a_line_or_drives_a_terminal(tmp_path: Path, name: str) -> None:
    log = AuditLog(tmp_path / "audit.jsonl")
    log.note("apply", Operator(name, Origin(name)), group=name)
    log.close()
    data = log.path.read_bytes()
    assert data.count(b"\n") == 1
    assert data.isascii()
    assert all(byte >= 0x20 for byte in data[:-1])
    assert json.loads(data)["group"] == name
    assert log.tail(1)[0]["user"] == name


def test_lines_are_added_and_never_changed(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    first, second = AuditLog(path), AuditLog(path)
    for number in range(3):
        first.note("one", ANNA, number=number)
        second.note("two", ANNA, number=number)
    assert [line["number"] for line in first.tail(4)] == [2, 2, 1, 1]
    assert len(path.read_text().splitlines()) == 6
    assert first.tail(100) == second.tail(100)


def test_a_line_that_was_cut_off_spoils_only_itself(tmp_path: Path) -> None:
    """The disk was full, or the machine stopped."""
    path = tmp_path / "audit.jsonl"
    path.write_bytes(b'{"event": "whole"}\n{"event": "to')
    path.chmod(0o600)
    log = AuditLog(path)
    log.note("next", ANNA)
    assert [line["event"] for line in log.tail(10)] == ["next", "whole"]


def test_a_disk_that_is_full_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What could not be noted must not be done."""
    log = AuditLog(tmp_path / "audit.jsonl")
    with monkeypatch.context() as patched:
        write = os.write
        patched.setattr(os, "write", lambda descriptor, data: write(descriptor, data[:5]))
        with pytest.raises(OSError, match="only 5 of"):
            log.note("apply", ANNA)
    log.note("later", ANNA)
    assert [line["event"] for line in log.tail(10)] == ["later"]


@pytest.mark.parametrize("mode", [0o620, 0o602])
def test_a_file_that_others_may_write_to_is_refused(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "audit.jsonl"
    path.touch()
    path.chmod(mode)
    with pytest.raises(BadAuditLog, match="can be written by others"):
        AuditLog(path)


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "link", tmp_path / "pipe", Path("/dev/null/audit.jsonl")):
        with pytest.raises(BadAuditLog, match="--audit"):
            AuditLog(path)
    assert not (tmp_path / "elsewhere").exists()


def test_who_guesses_passwords_does_not_fill_the_disk(tmp_path: Path) -> None:
    now = [0]
    log = AuditLog(tmp_path / "audit.jsonl", clock=lambda: now[0])
    for _ in range(100):
        log.note_refused_login(ANNA)
    assert len(log.tail(1000)) == 60
    now[0] = 60_000
    log.note_refused_login(ANNA)
    assert log.tail(1)[0]["left_out_before"] == 40


def test_the_tail_of_a_long_file_is_short(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    path.write_bytes(b"x" * 3_000_000 + b'\n{"event": "last"}\n')
    path.chmod(0o600)
    assert [line["event"] for line in AuditLog(path).tail(10)] == ["last"]
