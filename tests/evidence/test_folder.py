"""Everything below a folder, whoever made it: each file costs only itself."""

# ruff: noqa: E501 - outputs are quoted as they stand.

import bz2
import gzip
import io
import lzma
import os
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import pytest

from kelpie.evidence import Budget, read_evidence
from kelpie.evidence.logs import read_log
from kelpie.evidence.logs.hints import Hints, zone_of
from kelpie.observations import EventKind, Observations
from tests.evidence.records import batch, commit

LINE = "[2026-11-15 20:56:40,123] INFO [Consumer clientId=c, groupId=g] (Re-)joining group (x.Y)"
TABLE = (
    "GROUP           TOPIC           PARTITION  CURRENT-OFFSET  LOG-END-OFFSET  LAG             CONSUMER-ID     "
    "HOST            CLIENT-ID\n"
    "g               orders          0          5               9               4               -               "
    "-               -\n"
)
AT = 1794776200123


def _unasked(seen: Observations) -> dict[str, str]:
    return {row.name: row.reason for row in seen.unasked}


Mode = Literal["w:", "w:gz", "w:xz", "w:bz2"]


def _tar(files: dict[str, bytes], path: Path, mode: Mode = "w:gz", mtime: int = 0) -> Path:
    with tarfile.open(path, mode) as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size, member.mtime = len(content), mtime
            archive.addfile(member, io.BytesIO(content))
    return path


def test_a_file_is_what_its_content_is(tmp_path: Path) -> None:
    """Nobody names files for a tool."""
    (tmp_path / "a.csv").write_text(LINE + "\n")
    (tmp_path / "b.md").write_text(TABLE)
    (tmp_path / "c").write_bytes(batch([commit("h", 1)]))
    (tmp_path / "d.txt").write_text(
        "broker.id=3\nlisteners=PLAINTEXT://10.0.0.3:9092\nssl.key.password=secret\n"
    )
    seen = read_evidence([tmp_path])
    assert [row.kind for row in seen.events] == [EventKind.JOINING]
    assert [row.offset for row in seen.committed] == [5]
    assert [row.group for row in seen.commits] == ["h"]
    assert [(row.node_id, row.address) for row in seen.brokers] == [(3, "10.0.0.3:9092")]
    assert set(seen.known_groups) == {"g", "h"}
    assert seen.unasked == []
    assert "secret" not in repr(seen)


def test_single_files_and_several_folders_may_be_given(tmp_path: Path) -> None:
    """A row's source leads to the file, so several roots keep their names."""
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.log").write_text(LINE)
    (tmp_path / "b.log").write_text(LINE)
    seen = read_evidence([tmp_path / "one", tmp_path / "two", tmp_path / "b.log"])
    assert [row.source for row in seen.events] == ["one/a.log:1", "two/a.log:1", "b.log:1"]
    assert [row.source for row in read_evidence([str(tmp_path / "one")]).events] == ["a.log:1"]


def test_folders_of_the_same_name_are_told_apart(tmp_path: Path) -> None:
    """Disks of brokers are all called data; two of them are two copies, not one."""
    for broker in ("broker-1", "broker-2"):
        (tmp_path / broker / "data").mkdir(parents=True)
        (tmp_path / broker / "data" / "junk.bin").write_bytes(bytes(range(256)))
    found = read_evidence([tmp_path / "broker-1" / "data", tmp_path / "broker-2" / "data"])
    assert [row.name for row in found.unasked] == ["broker-1/data/junk.bin", "broker-2/data/junk.bin"]


@pytest.mark.parametrize(
    "kind", ["tar", "tar.gz", "tar.xz", "tar.bz2", "zip", "gz", "xz", "bz2", "tar.gz in zip"]
)
def test_archives_are_read_like_folders(tmp_path: Path, kind: str) -> None:
    """An incident arrives packed, and rotated logs are compressed."""
    content = LINE.encode()
    path = tmp_path / f"case.{kind.partition(' ')[0]}"
    if kind.startswith("tar"):
        modes: dict[str, Mode] = {"tar": "w:", "tar.gz": "w:gz", "tar.xz": "w:xz", "tar.bz2": "w:bz2"}
        _tar({"logs/a.log": content}, path, modes[kind.partition(" ")[0]])
        if kind.endswith("zip"):
            with zipfile.ZipFile(tmp_path / "outer.zip", "w") as archive:
                archive.write(path, "inner/case.tar.gz")
            path.unlink()
    elif kind == "zip":
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("logs/a.log", content)
    else:
        compressors: dict[str, Callable[[bytes], bytes]] = {
            "gz": gzip.compress,
            "xz": lzma.compress,
            "bz2": bz2.compress,
        }
        path.write_bytes(compressors[kind](content))
    (event,) = read_evidence([tmp_path]).events
    expected = {
        "gz": "case",
        "xz": "case",
        "bz2": "case",
        "tar.gz in zip": "outer.zip/inner/case.tar.gz/logs/a.log",
    }
    assert event.source.rpartition(":")[0] == expected.get(kind, f"{path.name}/logs/a.log")


def test_names_in_archives_lead_nowhere(tmp_path: Path) -> None:
    """A member that calls itself ../../etc/cron.d/x is written under a number, and shown tamed."""
    evil = tmp_path / "in" / "evil.tar.gz"
    evil.parent.mkdir()
    with tarfile.open(evil, "w:gz") as archive:
        for name in ("../../outside.log", "/absolute.log"):
            member = tarfile.TarInfo(name)
            member.size = len(LINE)
            archive.addfile(member, io.BytesIO(LINE.encode()))
        link = tarfile.TarInfo("link.log")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(link)
        device = tarfile.TarInfo("device")
        device.type = tarfile.CHRTYPE
        archive.addfile(device)
    seen = read_evidence([evil])
    assert [row.source for row in seen.events] == ["evil.tar.gz/outside.log:1", "evil.tar.gz/absolute.log:1"]
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["evil.tar.gz", "in"]
    assert [(row.name, row.reason) for row in seen.unasked] == [
        ("evil.tar.gz/link.log", "It is a link in an archive, and is not read."),
        ("evil.tar.gz/device", "It is a device or pipe in an archive, and is not read."),
    ]


@pytest.mark.parametrize("kind", ["gz", "tar.gz", "zip"])
def test_a_bomb_is_given_up_in_time_and_told(tmp_path: Path, kind: str) -> None:
    """A few kilobytes can hold gigabytes; what came before the bomb stands."""
    zeros = bytes(20_000_000)
    path = tmp_path / f"bomb.{kind}"
    if kind == "gz":
        path.write_bytes(gzip.compress(zeros))
    elif kind == "zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("a.log", LINE)
            archive.writestr("b.log", zeros)
    else:
        _tar({"a.log": LINE.encode(), "b.log": zeros}, path)
    seen = read_evidence([tmp_path], unpacked=Budget(bytes_left=1_000_000))
    assert "larger than is unpacked" in _unasked(seen)[path.name]
    assert len(seen.events) == (0 if kind == "gz" else 1)


def test_a_header_that_would_fill_the_memory_is_refused(tmp_path: Path) -> None:
    """Tar reads a long name as a whole, however long it claims to be."""
    member = tarfile.TarInfo("x")
    member.type, member.size = tarfile.GNUTYPE_LONGNAME, 2**33
    (tmp_path / "a.tar").write_bytes(member.tobuf(tarfile.GNU_FORMAT) + bytes(10240))
    assert "a header of 8589934592 bytes" in _unasked(read_evidence([tmp_path]))["a.tar"]


def test_broken_archives_are_read_as_far_as_they_go(tmp_path: Path) -> None:
    """The upload was cut off, and the first files are in it all the same."""
    files = {
        f"{number}.log": LINE.encode() + b"\n" + os.urandom(50_000).hex().encode() for number in range(4)
    }
    whole = _tar(files, tmp_path / "whole.tar.gz").read_bytes()
    (tmp_path / "whole.tar.gz").unlink()
    (tmp_path / "cut.tar.gz").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "junk.zip").write_bytes(b"PK\x03\x04" + os.urandom(500))
    (tmp_path / "junk.gz").write_bytes(b"\x1f\x8b" + os.urandom(500))
    seen = read_evidence([tmp_path])
    assert 1 <= len(seen.events) <= 3
    assert set(_unasked(seen)) == {"cut.tar.gz", "junk.zip", "junk.gz"}


def test_archives_within_archives_end_somewhere(tmp_path: Path) -> None:
    """Quines exist: archives that hold themselves."""
    content = LINE.encode()
    for _ in range(6):
        content = gzip.compress(content)
    (tmp_path / "deep.gz").write_bytes(content)
    seen = read_evidence([tmp_path])
    assert seen.events == []
    assert "more than 3 deep" in next(iter(_unasked(seen).values()))


def test_links_do_not_lead_out_of_the_folder(tmp_path: Path) -> None:
    """Whoever packs a folder must not choose what else of the operator's machine is read, and shown."""
    inside, outside = tmp_path / "case", tmp_path / "private"
    inside.mkdir()
    outside.mkdir()
    line = "[2026-11-15 20:56:40,123] INFO [Consumer clientId=c, groupId={}] (Re-)joining group (o.a.k.C)\n"
    (outside / "secret.log").write_text(line.format("secret"))
    (inside / "b.log").write_text(line.format("open"))
    (inside / "c.log").symlink_to(inside / "b.log")
    (inside / "folder").symlink_to(outside)
    (inside / "file.log").symlink_to("../private/secret.log")
    seen = read_evidence([inside])
    assert set(seen.known_groups) == {"open"}
    reason = "It is a link out of the folder, and is not followed. To read it, name its target."
    assert [(row.name, row.reason) for row in seen.unasked] == [("file.log", reason), ("folder", reason)]
    (tmp_path / "named").symlink_to(outside)
    assert set(read_evidence([tmp_path / "named"]).known_groups) == {"secret"}


def test_loops_of_links_and_files_that_are_none_cost_nothing(tmp_path: Path) -> None:
    """A pipe would be waited for until somebody writes into it."""
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "app.log").write_text(LINE)
    (tmp_path / "a" / "loop").symlink_to(tmp_path)
    (tmp_path / "b").symlink_to(tmp_path / "a")
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    (tmp_path / "itself").symlink_to(tmp_path / "itself")
    os.mkfifo(tmp_path / "pipe")
    seen = read_evidence([tmp_path])
    assert [row.source for row in seen.events] == ["a/app.log:1"]
    assert set(_unasked(seen)) == {"dangling", "itself", "pipe"}


def test_what_may_not_be_read_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Logs belong to other users, and root does not run the tests everywhere."""
    (tmp_path / "mine.log").write_text(LINE)
    (tmp_path / "theirs.log").write_text(LINE)
    (tmp_path / "closed").mkdir()
    listdir, opened = os.listdir, Path.open

    def refuse_folder(path: Path) -> list[str]:
        if path.name == "closed":
            raise PermissionError(13, "Permission denied")
        return listdir(path)

    def refuse_file(self: Path, *arguments: object, **options: object) -> object:
        if self.name == "theirs.log":
            raise PermissionError(13, "Permission denied")
        return opened(self, *arguments, **options)  # type: ignore[call-overload]

    monkeypatch.setattr(os, "listdir", refuse_folder)
    monkeypatch.setattr(Path, "open", refuse_file)
    seen = read_evidence([tmp_path])
    assert [row.source for row in seen.events] == ["mine.log:1"]
    assert _unasked(seen) == {
        "closed": "The folder cannot be read: permission denied.",
        "theirs.log": "It cannot be read: permission denied.",
    }


def test_each_useless_file_is_told_with_the_reason(tmp_path: Path) -> None:
    """Whoever sent it wants to know why it did not help."""
    (tmp_path / "empty.txt").touch()
    (tmp_path / "noise.bin").write_bytes(os.urandom(100_000))
    (tmp_path / "letter.txt").write_text("Dear colleague,\nthe groups are slow today.\n")
    assert _unasked(read_evidence([tmp_path])) == {
        "empty.txt": "It is empty.",
        "noise.bin": "It is binary, and neither a log segment nor an archive.",
        "letter.txt": "It is a text, and there is nothing in it that Kelpie knows.",
    }
    assert "cannot be opened" in _unasked(read_evidence([tmp_path / "nothing"]))["nothing"]


def test_lines_without_end_do_not_fill_the_memory(tmp_path: Path) -> None:
    """One line of many megabytes is cut; the next one is read."""
    with (tmp_path / "a.log").open("w") as file:
        file.write(LINE + "\n")
        for _ in range(64):
            file.write("x" * 1_000_000)
        file.write("\n" + LINE + "\n")
    seen = read_evidence([tmp_path])
    assert [row.source for row in seen.events] == ["a.log:1", "a.log:3"]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-8-sig", "latin-1"])
def test_texts_of_other_encodings_are_read(tmp_path: Path, encoding: str) -> None:
    """PowerShell saves what it prints as UTF-16."""
    (tmp_path / "out.txt").write_bytes(("é\n" + TABLE).replace("\n", "\r\n").encode(encoding))
    assert [row.offset for row in read_evidence([tmp_path]).committed] == [5]


def test_the_time_zone_is_an_option(tmp_path: Path) -> None:
    """For logs that name none; a name that does not exist is refused in words."""
    (tmp_path / "a.log").write_text(LINE)
    (event,) = read_evidence([tmp_path], hints=Hints(zone_of("America/New_York"))).events
    assert event.at == AT + 5 * 3600 * 1000
    with pytest.raises(ValueError, match="There is no time zone 'Mars/Olympus'"):
        zone_of("Mars/Olympus")


def test_a_log_that_names_no_group_is_called_after_one(tmp_path: Path) -> None:
    """The last resort, and said so: the event tells where the group is from."""
    (tmp_path / "billing-1.log").write_text("(Re-)joining group billing-1\n")
    line = "[2026-11-15 20:56:40,123] WARN Heartbeat poll expired, leaving group (x.Y)\n"
    (tmp_path / "client-billing-1.during.log").write_text(line)
    (tmp_path / "client-orders-eu.log.1").write_text(line)
    groups = {
        row.source: (row.group, row.details.get("group_from")) for row in read_evidence([tmp_path]).events
    }
    assert groups == {
        "billing-1.log:1": ("billing-1", None),
        "client-billing-1.during.log:1": ("billing-1", "the name of client-billing-1.during.log"),
        "client-orders-eu.log.1:1": ("orders-eu", "the name of client-orders-eu.log.1"),
    }


def test_settings_on_which_all_brokers_agree_are_those_of_any_broker(tmp_path: Path) -> None:
    """Rules ask for the setting, not for whose it is."""
    for node in (1, 2):
        (tmp_path / f"{node}.properties").write_text(
            f"node.id={node}\nprocess.roles=broker\noffsets.topic.num.partitions=50\nlog.dirs=/data/{node}\n"
        )
    settings = {(row.of, row.name): row.value for row in read_evidence([tmp_path]).settings}
    assert settings["broker", "offsets.topic.num.partitions"] == "50"
    assert ("broker", "log.dirs") not in settings
    assert settings["broker 2", "log.dirs"] == "/data/2"


def test_a_stumble_over_one_file_leaves_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A defect of ours in the middle of somebody's outage must not cost them everything."""
    (tmp_path / "a.log").write_text(LINE)
    (tmp_path / "b.log").write_text(LINE)
    from kelpie.evidence import folder

    def stumble(lines: Any, name: str, hints: Any) -> object:
        if name == "a.log":
            raise ZeroDivisionError("division by zero")
        return read_log(lines, name, hints)

    monkeypatch.setattr(folder, "read_log", stumble)
    seen = read_evidence([tmp_path])
    assert [row.source for row in seen.events] == ["b.log:1"]
    assert "defect of Kelpie" in _unasked(seen)["a.log"]
