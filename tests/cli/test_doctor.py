"""`kelpie doctor` as a person, and as a program, uses it."""

import asyncio
import contextlib
import json
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from kelpie.cli import main
from kelpie.cli.doctor import print_changes
from kelpie.client.settings import Settings
from kelpie.examination import Examination
from kelpie.lab import SyncCluster
from kelpie.model.partitioning import partition_for
from kelpie.wire.api.find_coordinator import FindCoordinatorRequest
from kelpie.wire.api.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from tests.lab.client import Client

PARTITIONS = 6
GROUPS = [f"billing-{number}" for number in range(8)]
SCHEMA = json.loads((Path(__file__).parents[2] / "docs" / "schemas/doctor.json").read_text())

Doctor = Callable[..., tuple[int, str]]


@pytest.fixture
def cluster(wait_until: Callable[..., None]) -> Iterator[SyncCluster]:
    """Groups that have committed, on an offsets topic with two replicas."""
    with SyncCluster(3, replication=2, offsets_partitions=PARTITIONS) as cluster:
        assignment = {number: (number % 3 + 1, (number + 1) % 3 + 1) for number in range(PARTITIONS)}
        cluster.create_topic(
            "__consumer_offsets", config={"cleanup.policy": "compact"}, assignment=assignment
        )
        cluster.create_topic("orders", replication=3)
        for group in GROUPS:
            _commit(cluster, group, wait_until)
        yield cluster


def _commit(cluster: SyncCluster, group: str, wait_until: Callable[..., None]) -> None:
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=0, committed_metadata="")
    request = OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=-1,
        topics=[OffsetCommitRequestTopic(name="orders", partitions=[partition])],
    )

    def done() -> bool:
        with Client(cluster) as client:
            node = client.ask(FindCoordinatorRequest(key=group)).node_id
        with Client(cluster, node - 1) as coordinator:
            answer = coordinator.ask(request, 2)
        return bool(answer.topics[0].partitions[0].error_code == 0)

    wait_until(done)


@pytest.fixture
def doctor(cluster: SyncCluster, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Doctor:
    def run(*arguments: str) -> tuple[int, str]:
        capsys.readouterr()
        status = main(["doctor", *arguments, "-b", cluster.bootstrap_servers, "--store", str(tmp_path)])
        return status, capsys.readouterr().out

    return run


def _as_json(answer: tuple[int, str]) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(answer[1])
    jsonschema.Draft202012Validator(SCHEMA).validate(document)
    return document


def _break(cluster: SyncCluster, doctor: Doctor, wait_until: Callable[..., None]) -> set[str]:
    """Brokers 2 and 3 die; who is hit."""
    doctor()
    cluster.kill(2)
    cluster.kill(3)
    wait_until(lambda: _dead(_as_json(doctor("--json"))) == {2, 3})
    return {group for group in GROUPS if partition_for(group, PARTITIONS) % 3 == 1}


def _dead(document: dict[str, Any]) -> set[int]:
    return {broker["node_id"] for broker in document["cluster"]["brokers"] if broker["alive"] is False}


def test_a_healthy_cluster_is_one_good_line_and_status_0(doctor: Doctor) -> None:
    """For cron and for the morning."""
    status, page = doctor()
    assert status == 0
    assert page.splitlines()[0] == "OK: nothing wrong was found with 8 groups."


def test_an_outage_is_critical_and_status_2(
    cluster: SyncCluster, doctor: Doctor, wait_until: Callable[..., None]
) -> None:
    """The groups that nobody lists any more are known from the look before."""
    hit = _break(cluster, doctor, wait_until)
    status, page = doctor()
    assert status == 2
    assert page.splitlines()[0] == (
        f"CRITICAL: {len(hit)} of 8 groups have no coordinator (brokers 2 and 3 are dead)."
    )
    document = _as_json(doctor("--json"))
    assert {it["group"] for it in document["findings"] if it["code"] == "KLP101"} == hit
    assert set(document["blast_radius"]["groups"]) == hit
    assert {row["group"] for row in document["unlisted"]} == hit
    assert {row["name"] for row in document["unasked"] if row["kind"] == "group"} == hit


def test_one_group_may_be_asked_for(
    cluster: SyncCluster, doctor: Doctor, wait_until: Callable[..., None]
) -> None:
    """Whoever is on call for one group asks for that one; its neighbours' trouble is not its own."""
    hit = _break(cluster, doctor, wait_until)
    group, other = min(hit), min(set(GROUPS) - hit)
    assert doctor(group)[0] == 2
    document = _as_json(doctor(other, "--json"))
    assert document["groups"] == [other]
    assert not [it for it in document["findings"] if it["code"] == "KLP101"]


def test_groups_are_chosen_by_pattern(doctor: Doctor) -> None:
    """A pattern that matches nothing is told like a name that nobody knows."""
    chosen = _as_json(doctor("billing-*", "--exclude", "*-[1-7]", "--json"))
    assert chosen["groups"] == ["billing-0"]
    others = _as_json(doctor("--exclude", "billing-0", "--json"))
    assert others["groups"] == [group for group in GROUPS if group != "billing-0"]
    status, text = doctor("shipping-*")
    assert status == 3
    assert "shipping-*" in text


def test_findings_are_chosen_by_severity(
    cluster: SyncCluster, doctor: Doctor, wait_until: Callable[..., None]
) -> None:
    """The exit status is that of what is told."""
    _break(cluster, doctor, wait_until)
    everything = _as_json(doctor("--json"))
    critical = _as_json(doctor("--json", "--severity", "critical"))
    assert {finding["severity"] for finding in everything["findings"]} > {"critical"}
    assert {finding["severity"] for finding in critical["findings"]} == {"critical"}


def test_a_group_that_no_broker_knows_is_no_good_news(doctor: Doctor) -> None:
    """A misspelt name in a cron job must not look as if all were well."""
    status, page = doctor("no-such-group")
    assert status == 3
    assert page.startswith("UNDETERMINED: no broker knows the group no-such-group")


def test_a_group_that_no_broker_knows_is_named_beside_what_is_wrong(
    cluster: SyncCluster, doctor: Doctor, wait_until: Callable[..., None]
) -> None:
    """An outage does not make a group of a misspelt name, and does not hide that it was misspelt. Of a name
    whose coordinator is gone, nobody can say whether it is one.
    """
    _break(cluster, doctor, wait_until)
    by_place = {partition_for(name, PARTITIONS) % 3: name for name in map("no-such-{}".format, range(20))}
    misspelt, lost = by_place[0], by_place[1]
    status, page = doctor(misspelt, lost)
    assert status == 2
    assert f"No broker knows the group {misspelt} (misspelt" in " ".join(page.split())
    document = _as_json(doctor(misspelt, lost, "--json"))
    assert document["unknown_groups"] == [misspelt]
    summaries = " ".join(finding["summary"] for finding in document["findings"])
    assert f"Group {lost} has no coordinator" in summaries
    assert misspelt not in summaries


def test_commands_reach_the_cluster_as_the_doctor_did(
    cluster: SyncCluster, doctor: Doctor, wait_until: Callable[..., None], tmp_path: Path
) -> None:
    """With the same client properties; and none of them changes anything before its plan was seen."""
    properties = tmp_path / "admin.properties"
    properties.write_text("client.id=night-shift\n")
    _break(cluster, doctor, wait_until)
    _, page = doctor("--full", "--command-config", str(properties))
    lines = [line.strip() for line in page.splitlines() if line.strip().startswith("$ ")]
    assert any(line.startswith("$ kelpie rehome") for line in lines)
    assert all(f" --command-config {properties}" in line for line in lines)
    assert not any("--apply" in line or "--execute" in line for line in lines)


def test_one_code_may_be_asked_for(
    cluster: SyncCluster, doctor: Doctor, wait_until: Callable[..., None]
) -> None:
    """An alert on one finding; the status follows from that one alone."""
    _break(cluster, doctor, wait_until)
    document = _as_json(doctor("--json", "--code", "klp106"))
    assert {it["code"] for it in document["findings"]} == {"KLP106"}
    assert doctor("--code", "KLP106")[0] == 1
    assert doctor("--code", "KLP102")[0] == 0


def test_nobody_answers_is_status_3(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """To see nothing is not to see that all is well."""
    arguments = ["doctor", "-b", "127.0.0.1:1", "--store", str(tmp_path), "--timeout", "1"]
    assert main(arguments) == 3
    assert capsys.readouterr().out.startswith("UNKNOWN: not one broker answered")
    assert main([*arguments, "--json"]) == 3
    document = _as_json((3, capsys.readouterr().out))
    assert document["unasked"][0]["kind"] == "broker"


def test_groups_of_a_cluster_that_is_all_dead_are_known_from_before(
    cluster: SyncCluster, doctor: Doctor
) -> None:
    """Nobody is left to tell the cluster's id: its addresses do. That all was well before is not news."""
    assert doctor()[0] == 0
    for node in (1, 2, 3):
        cluster.kill(node)
    status, page = doctor("--timeout", "1")
    assert status == 3
    assert page.startswith("UNKNOWN: not one broker answered; nothing can be said about the 8 groups known")
    assert all(group in page for group in GROUPS)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "-b HOST:PORT"),
        (["-b", "nonsense"], "the port is missing"),
        (["-b", "a:1", ""], "An empty name is no name"),
        (["-b", "a:1", "--code", "KLP999"], "There is no finding 'KLP999'"),
        (["-b", "a:1", "--bogus"], "--bogus"),
        (["-b", "a:1", "--history", "much"], "512K"),
        (["-b", "a:1", "--watch", "0"], "seconds"),
        (["--evidence", "/nowhere/at/all"], "/nowhere/at/all"),
        (["--evidence", ".", "--watch"], "files do not change"),
        (["--evidence", ".", "--time-zone", "Mars/Olympus"], "There is no time zone 'Mars/Olympus'"),
        (["--evidence", ".", "--log-layout", "*.log"], "'*.log' is no layout"),
        (["-b", "a:1", "--store", "x", "--no-store"], "not allowed with"),
    ],
)
def test_what_is_not_understood_is_status_64(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """2 means something critical: a typing error must not wake anybody."""
    try:
        status = main(["doctor", *arguments])
    except SystemExit as end:
        status = end.code  # type: ignore[assignment]
    assert status == 64
    assert said in capsys.readouterr().err


def test_a_store_that_cannot_be_used_is_told_and_no_reason_to_stop(
    cluster: SyncCluster, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """The diagnosis is worth more than its memory."""
    (tmp_path / "surveys").mkdir()
    (tmp_path / "surveys" / "index.v3.sqlite3").write_bytes(b"rubbish" * 1000)
    assert main(["doctor", "-b", cluster.bootstrap_servers, "--store", str(tmp_path)]) == 0
    said = capsys.readouterr()
    assert said.out.startswith("OK:")
    assert "was unreadable" in said.err


def test_without_a_store_nothing_is_kept(
    cluster: SyncCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever says so leaves no trace."""
    monkeypatch.setenv("KELPIE_STATE", str(tmp_path))
    assert main(["doctor", "-b", cluster.bootstrap_servers, "--no-store"]) == 0
    assert not list(tmp_path.iterdir())
    assert main(["doctor", "-b", cluster.bootstrap_servers]) == 0
    assert [path.name for path in tmp_path.iterdir()] == ["surveys"]


def test_looking_changes_nothing(cluster: SyncCluster, doctor: Doctor) -> None:
    """No topic is made, no group joined, nothing committed."""
    before = cluster.describe()
    assert doctor()[0] == 0
    assert cluster.describe() == before


@contextlib.contextmanager
def _receiver() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """The address of a web server, and what was sent to it."""
    sent: list[dict[str, Any]] = []

    class Keeps(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            sent.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Tests are quiet."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Keeps) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/hook", sent
        finally:
            server.shutdown()
            thread.join()


def test_a_watch_sends_what_changes_and_nothing_else(
    cluster: SyncCluster, tmp_path: Path, wait_until: Callable[..., None]
) -> None:
    """A message when a group is cut off, one when it is back, and none for the looks between."""
    command = [sys.executable, "-c", _INTERRUPTIBLE, "doctor", "-b", cluster.bootstrap_servers]
    with _receiver() as (address, sent), cluster.observe(api="ListGroups") as looks:
        command += ["--watch", "0.1", "--store", str(tmp_path), "--notify", address]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            try:

                def cut_off() -> list[str]:
                    new = [finding for message in sent for finding in message["new"]]
                    return [finding["group"] for finding in new if finding["code"] == "KLP101"]

                a_look = len(cluster.node_ids)
                wait_until(lambda: len(looks.requests) > a_look)
                with cluster.make_leaderless("__consumer_offsets", partition_for(GROUPS[0], PARTITIONS)):
                    wait_until(lambda: GROUPS[0] in cut_off())
                    # The look that was struck may have seen a part of it, and something else for that.
                    struck = len(looks.requests)
                    wait_until(lambda: len(looks.requests) > struck + 2 * a_look)
                    begun, told = len(looks.requests), len(sent)
                    wait_until(lambda: len(looks.requests) > begun + 3)
                    assert sent[told:] == []
                wait_until(lambda: any(message["gone"] for message in sent))
                assert cut_off().count(GROUPS[0]) == 1
                process.send_signal(signal.SIGINT)
                process.communicate(timeout=30)
            finally:
                process.kill()


_INTERRUPTIBLE = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # Shells have jobs in the background ignore it.
from kelpie.cli import main
sys.exit(main(sys.argv[1:]))
"""


def test_changes_fit_the_terminal(
    cluster: SyncCluster, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In a file, each stays one line, for those who search it."""
    examination = Examination(Settings.of(cluster.bootstrap_servers))
    well, *_ = asyncio.run(examination.examine())
    with cluster.make_leaderless("__consumer_offsets", partition_for(GROUPS[0], PARTITIONS)):
        ill, *_ = asyncio.run(examination.examine())
    told = {}
    for columns in ("80", ""):
        monkeypatch.setenv("COLUMNS", columns)
        print_changes(well, ill)
        told[columns] = capsys.readouterr().out
    lines = told["80"].splitlines()
    assert max(map(len, lines)) <= 80 < max(map(len, told[""].splitlines()))
    assert any(line.startswith("        ") for line in lines), "what goes on stands below its beginning"
    assert " ".join(told["80"].split()) == " ".join(told[""].split())


def test_a_watch_tells_what_comes(cluster: SyncCluster, tmp_path: Path) -> None:
    """The first look in full, then a line each time; Ctrl-C ends it with the status of the last look."""
    command = [sys.executable, "-c", _INTERRUPTIBLE, "doctor", "-b", cluster.bootstrap_servers]
    command += ["--watch", "0.1", "--store", str(tmp_path)]
    with (
        cluster.observe(api="DescribeConfigs") as settings,
        cluster.observe(api="ListGroups") as looks,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process,
    ):
        try:
            assert process.stdout is not None
            assert process.stdout.readline().startswith("OK:")
            with cluster.make_leaderless("__consumer_offsets", partition_for(GROUPS[0], PARTITIONS)):
                for line in process.stdout:
                    if line.startswith("  new   KLP101 CRITICAL") and GROUPS[0] in line:
                        break
                process.send_signal(signal.SIGINT)
                _, errors = process.communicate(timeout=30)
            assert errors == ""
            assert process.returncode == 2
            assert len(settings.requests) < len(looks.requests), "not every look asks for them"
        finally:
            process.kill()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--notify", "https://host/"], "needs --watch"),
        (["--watch", "--notify", "ftp://host/"], "no address"),
        (["--watch", "--notify", "https://host/", "--notify-headers", "nowhere/at/all"], "nowhere/at/all"),
        (["--watch", "--notify", "https://host/", "--notify-format", "xml"], "alertmanager"),
    ],
)
def test_a_notification_that_cannot_be_is_explained(
    options: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with contextlib.suppress(SystemExit):
        assert main(["doctor", "-b", "127.0.0.1:1", *options]) == 64
    assert words in capsys.readouterr().err


def test_a_header_of_the_environment_is_never_printed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("KELPIE_NOTIFY_HEADER", "s3cret without a colon")
    assert main(["doctor", "-b", "127.0.0.1:1", "--watch", "--notify", "https://host/"]) == 64
    err = capsys.readouterr().err
    assert "NAME: VALUE" in err
    assert "s3cret" not in err
