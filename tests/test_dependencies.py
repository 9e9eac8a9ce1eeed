"""Every pinned dependency was looked at for advisories, in the very version that is pinned."""

import re
from datetime import date
from pathlib import Path
from typing import NamedTuple

import pytest
from packaging.version import Version

ROOT = Path(__file__).parents[1]
_PIN = re.compile(r"^(?P<name>[A-Za-z0-9._-]+)==(?P<version>[^\s;\\]+)", re.MULTILINE)
_ROW = re.compile(r"(?P<name>\S+) (?P<version>\S+)(?: (?P<known>.+))?")
_FIXED = re.compile(r"(?P<id>(?:CVE|GHSA|PYSEC)-[\w-]+) (?:fixed (?P<fixed>\S+)|unaffected: (?P<reason>.+))")


class Pin(NamedTuple):
    name: str
    version: str


def _pins(lock: str) -> set[Pin]:
    return {Pin(found["name"], found["version"]) for found in _PIN.finditer(lock)}


def _rows(audit: str) -> dict[Pin, list[str]]:
    rows = {}
    for line in audit.splitlines():
        if line and not line.startswith("#"):
            found = _ROW.fullmatch(line)
            assert found is not None, line
            known = found["known"].split(", ") if found["known"] else []
            rows[Pin(found["name"], found["version"])] = known
    return rows


def _open_advisories(rows: dict[Pin, list[str]]) -> list[str]:
    """Advisories that hold for the pinned version, or that cannot be read."""
    wrong = []
    for pin, known in rows.items():
        for text in known:
            found = _FIXED.fullmatch(text)
            if found is None or (found["fixed"] and Version(pin.version) < Version(found["fixed"])):
                wrong.append(f"{pin.name} {pin.version}: {text}")
    return wrong


def test_the_list_of_advisories_is_that_of_the_lock_file() -> None:
    """Who pins a version anew looks at its advisories, too, and writes that down."""
    audit = (ROOT / "requirements.audit").read_text(encoding="utf-8")
    assert set(_rows(audit)) == _pins((ROOT / "requirements.lock").read_text(encoding="utf-8"))
    reviewed = re.search(r"^# reviewed (\S+):", audit, re.MULTILINE)
    assert reviewed is not None
    assert date.fromisoformat(reviewed[1]) >= date(2026, 11, 17)


def test_no_pinned_version_has_an_advisory_that_is_open() -> None:
    """The fixed version is not newer than the pinned one, or a reason says why it does not matter."""
    assert _open_advisories(_rows((ROOT / "requirements.audit").read_text(encoding="utf-8"))) == []


@pytest.mark.parametrize("known", ["CVE-2023-47248 fixed 14.0.1", "CVE-2023-47248", "GHSA-x unaffected: "])
def test_an_advisory_that_is_open_is_seen(known: str) -> None:
    """A list that cannot fail is no list."""
    assert _open_advisories({Pin("pyarrow", "14.0.0"): [known]})


def test_every_dependency_comes_with_its_hashes() -> None:
    """make setup installs with --require-hashes; a line without one would stop it."""
    lock = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    entries = re.split(r"^(?=[A-Za-z0-9])", lock, flags=re.MULTILINE)[1:]
    assert [entry.split()[0] for entry in entries if "--hash=sha256:" not in entry] == []
