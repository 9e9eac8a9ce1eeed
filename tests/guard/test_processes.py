"""`kelpie guard` with real processes: small scripts that behave as consumers do, well and badly."""

import os
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

LIMIT_S = 60.0
FAIL = """
fail() {
  echo "[2026-11-15 22:11:40,090] ERROR [g_a-1], error during syncedRebalance (kafka.consumer.ZookeeperConsumerConnector)"
  echo "kafka.common.ConsumerRebalanceFailedException: g_a-1 can't rebalance after 2 retries"
  printf '\\tat kafka.consumer.ZookeeperConsumerConnector$ZKRebalancerListener.syncedRebalance(Z.scala:633)\\n'
}
run=$(($(cat "$0.runs" 2>/dev/null || echo 0) + 1)); echo $run >"$0.runs"
"""  # noqa: E501 - a line of a log is quoted as it stands.
"""Shell: `fail` prints what the consumer of 0.8 prints, and `run` counts the runs."""
Wait = Callable[..., None]


def heeding() -> None:
    """Whoever runs the tests under nohup, or in the background, has signals ignored: a guard keeps that."""
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
        signal.signal(number, signal.SIG_DFL)


class Guards:
    """Starts guards, and ends what is left of them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._all: list[subprocess.Popen[bytes]] = []

    def script(self, text: str) -> Path:
        file = self.folder / "consumer.sh"
        file.write_text(FAIL + text)
        return file

    def start(
        self, options: Sequence[str], command: Sequence[str], **more: object
    ) -> subprocess.Popen[bytes]:
        words = [sys.executable, "-m", "kelpie", "guard", "--backoff", "0.05", *options, "--", *command]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "preexec_fn": heeding, **more}
        process = subprocess.Popen(words, bufsize=0, **pipes)  # type: ignore[call-overload]
        self._all.append(process)
        return process  # type: ignore[no-any-return]

    def run(self, text: str, *options: str) -> tuple[int, str, str]:
        """A script under a guard, to its end: exit code, standard output and error."""
        process = self.start(options, ["sh", str(self.script(text))])
        out, errors = process.communicate(timeout=LIMIT_S)
        return process.returncode, out.decode(), errors.decode()

    @property
    def runs(self) -> int:
        file = self.folder / "consumer.sh.runs"
        return int(file.read_text() or 0) if file.exists() else 0

    def close(self) -> None:
        for process in self._all:
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            for pipe in (process.stdout, process.stderr):
                if pipe is not None:
                    pipe.close()


@pytest.fixture
def guards(tmp_path: Path) -> Iterator[Guards]:
    guards = Guards(tmp_path)
    yield guards
    guards.close()


def own_lines(errors: str) -> list[str]:
    return [line for line in errors.splitlines() if line.startswith("kelpie guard: ")]


def numbers_in(file: Path) -> list[int]:
    return [int(line) for line in file.read_text().split()]


def ended(pid: int) -> bool:
    """Zombies have ended; who reaps them, and when, is not ours to say."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except OSError:
        return True


def test_both_streams_pass_through_byte_for_byte_to_a_slow_reader(guards: Guards, tmp_path: Path) -> None:
    """Bytes that are no text, a line of a megabyte, and more than any pipe holds."""
    data = os.urandom(300_000) + b"x" * 1_000_000 + b"\r\n\xff\xfe end without line break"
    (tmp_path / "data").write_bytes(data)
    copy = "cat data; cat data >&2"
    process = guards.start(["--watch", "stdout,stderr"], ["sh", "-c", copy], cwd=tmp_path)
    assert process.stdout is not None
    assert process.stderr is not None
    out = b""
    while piece := process.stdout.read(10_007):
        out += piece
        if len(out) == len(data):
            break  # Only now is standard error read, whose pipe has been full for long.
    errors = b""
    while piece := process.stderr.read(10_007):
        errors += piece
    assert process.wait(LIMIT_S) == 0
    assert out == data
    assert errors == data


@pytest.mark.parametrize("status", [0, 7, -signal.SIGKILL, -signal.SIGUSR2])
def test_the_guard_ends_as_the_process_ends(guards: Guards, status: int) -> None:
    """With its code, or by its signal; and without a word."""
    text = f"exit {status}" if status >= 0 else f"kill -{-status} $$"
    assert guards.run(text) == (status, "", "")


def test_a_consumer_that_gave_up_is_brought_back(guards: Guards) -> None:
    """The first run fails as the consumer of 0.8 does, and sits there; the second one consumes."""
    code, out, errors = guards.run(
        "echo run $run; [ $run = 1 ] && { fail >&2; sleep 600; }; echo consumed; exit 3"
    )
    assert (code, out) == (3, "run 1\nrun 2\nconsumed\n")
    (line,) = own_lines(errors)
    assert "saw rebalance-failed (watcher)" in line
    assert "g_a-1 can't rebalance after 2 retries" in line
    assert "sent SIGTERM; the process ended by SIGTERM" in line


def test_a_consumer_that_ends_with_0_right_after_the_fatal_line_is_brought_back(guards: Guards) -> None:
    """Kafka's console consumer does: the line, read after the end, still counts."""
    code, out, _ = guards.run("echo run $run; [ $run = 1 ] && { fail >&2; exit 0; }; exit 3")
    assert (code, out) == (3, "run 1\nrun 2\n")


def test_a_payload_on_standard_output_restarts_nothing(guards: Guards) -> None:
    """A console consumer prints records there. Who has logs there says so, and has them watched."""
    assert guards.run("fail; exit 0")[0] == 0
    assert guards.runs == 1
    code, _, errors = guards.run("trap '' TERM; fail", "--watch", "stdout", "--restarts-per-hour", "1")
    assert (code, guards.runs) == (1, 3)
    assert "gave up after 1 restart within an hour" in errors


def test_a_group_that_ignores_sigterm_is_killed_and_a_pipe_held_from_outside_does_not_matter(
    guards: Guards, tmp_path: Path
) -> None:
    """A grandchild that lives on would keep the partitions. One in another session only holds the pipe."""
    text = """
    trap '' TERM
    sleep 600 & echo $! >>inside
    setsid sleep 600 >/dev/null & echo $! >>outside
    fail >&2; wait; wait
    """
    options = ["--grace", "0.3", "--restarts-per-hour", "1"]
    process = guards.start(options, ["sh", str(guards.script(text))], cwd=tmp_path)
    try:
        _, errors = process.communicate(timeout=LIMIT_S)
        assert process.returncode == -signal.SIGKILL
        assert "sent SIGTERM and, after 0.3 s, SIGKILL; the process ended by SIGKILL" in errors.decode()
        assert [ended(pid) for pid in numbers_in(tmp_path / "inside")] == [True, True]
        assert [ended(pid) for pid in numbers_in(tmp_path / "outside")] == [False, False]
    finally:
        for pid in numbers_in(tmp_path / "outside"):
            os.kill(pid, signal.SIGKILL)


def test_a_process_that_writes_a_lot_while_it_closes_can_close(guards: Guards) -> None:
    """The thread that ends it is not the one that empties its pipe."""
    text = """
    trap 'head -c 1000000 /dev/zero >&2; exit 5' TERM
    [ $run = 2 ] && exit 4
    fail >&2; while :; do sleep 0.05; done
    """
    code, _, errors = guards.run(text)
    assert code == 4
    assert "the process ended with code 5" in errors


def test_nobody_reads_and_a_fatal_line_still_counts(guards: Guards, wait_until: Wait) -> None:
    """The process hangs in a write to a full pipe; that is no reason to leave it there."""
    text = "fail >&2; head -c 1000000 /dev/zero; sleep 600"
    guards.start(["--watch", "stdout,stderr"], ["sh", str(guards.script(text))])
    wait_until(lambda: guards.runs >= 3)


def test_a_reader_that_goes_away_is_seen_by_the_process(guards: Guards) -> None:
    """`kelpie guard -- consumer | head` ends the consumer by SIGPIPE, as without a guard."""
    process = guards.start(["--watch", "stdout"], ["sh", "-c", "while echo line; do :; done"])
    assert process.stdout is not None
    process.stdout.read(4)
    process.stdout.close()
    assert process.wait(LIMIT_S) in (-signal.SIGPIPE, 2)


def test_signals_reach_the_process(guards: Guards) -> None:
    """It closes cleanly, and the guard ends with its code."""
    text = """
    trap 'echo usr1' USR1; trap 'echo hup' HUP; trap 'echo closing; exit 9' TERM
    echo ready; while :; do sleep 0.05; done
    """
    process = guards.start([], ["sh", str(guards.script(text))])
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    for number, said in (
        (signal.SIGUSR1, b"usr1\n"),
        (signal.SIGHUP, b"hup\n"),
        (signal.SIGTERM, b"closing\n"),
    ):
        process.send_signal(number)
        assert process.stdout.readline() == said
    assert process.wait(LIMIT_S) == 9


def test_a_signal_that_was_ignored_stays_ignored(guards: Guards) -> None:
    """Under nohup, the process must outlive the terminal too."""
    text = "kill -HUP $$; echo alive"
    process = guards.start(
        [], ["sh", str(guards.script(text))], preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN)
    )
    assert process.communicate(timeout=LIMIT_S)[0] == b"alive\n"


def test_sigterm_during_the_back_off_ends_the_guard(guards: Guards) -> None:
    """It does not start the process first."""
    options = ["--backoff", "600", "--longest-backoff", "600"]
    process = guards.start(options, ["sh", str(guards.script("fail >&2; exit 1"))])
    assert process.stderr is not None
    errors = b""
    while b"starts it again in" not in errors:
        errors += process.stderr.read(4096)
    process.terminate()
    assert process.wait(LIMIT_S) == -signal.SIGTERM
    assert guards.runs == 1
    assert b"got SIGTERM while the process was not running" in process.stderr.read(4096)


def test_log_files_are_watched_through_rotation(guards: Guards, tmp_path: Path) -> None:
    """What stood in the file before the start is of an earlier process."""
    log = tmp_path / "app.log"
    log.write_text("[2026-11-15 22:11:40,090] INFO x (y)\nFATAL: from yesterday\n")
    text = "[ $run = 2 ] && exit 4; mv app.log app.log.1; echo 'FATAL: now' >app.log; sleep 600"
    process = guards.start(
        ["--watch", "app.log", "--fatal", "^FATAL: "], ["sh", str(guards.script(text))], cwd=tmp_path
    )
    _, errors = process.communicate(timeout=LIMIT_S)
    assert process.returncode == 4
    (line,) = own_lines(errors.decode())
    assert 'saw pattern: "FATAL: now"' in line


def test_what_the_guard_did_can_be_scraped(guards: Guards, tmp_path: Path, wait_until: Wait) -> None:
    """From a file for node_exporter, and over HTTP on loopback. The guard's own lines go to its log."""
    file, log = tmp_path / "guard.prom", tmp_path / "guard.log"
    options = ["--metrics-file", str(file), "--log", str(log), "--name", 'orders "1"', "--metrics-port", "0"]
    text = "[ $run = 1 ] && { fail >&2; exit 0; }; echo up; sleep 600"
    process = guards.start(options, ["sh", str(guards.script(text))])
    assert process.stdout is not None
    assert process.stdout.readline() == b"up\n"
    expected = 'kelpie_guard_restarts_total{name="orders \\"1\\"",sign="rebalance-failed"} 1'
    wait_until(lambda: expected in file.read_text())
    assert 'kelpie_guard_process_running{name="orders \\"1\\""} 1' in file.read_text()
    lines = log.read_text().splitlines()
    (port,) = [line.rpartition(":")[2].partition("/")[0] for line in lines if "metrics" in line]
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        assert expected in answer.read().decode()
    process.terminate()
    process.wait(LIMIT_S)
    assert 'kelpie_guard_process_running{name="orders \\"1\\""} 0' in file.read_text()


@pytest.mark.parametrize(
    ("words", "status", "text"),
    [
        (["--", "/no/such/program"], 127, "/no/such/program cannot be started: No such file"),
        (["--", "/"], 126, "/ cannot be started: Permission denied"),
        ([], 64, "No command is given"),
        (["--fatal", "(", "--", "true"], 64, "is no regular expression"),
        (["--restart-on", "rain", "--", "true"], 64, "choose of rebalance-failed"),
        (["--metrics-file", "/no/such/folder/x.prom", "--", "true"], 64, "cannot be written"),
        (["--log", "/no/such/folder/x.log", "--", "true"], 64, "cannot be written"),
    ],
)
def test_mistakes_are_told(
    words: list[str], status: int, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """In one line, with what to do; the codes are those of a shell."""
    from kelpie.cli import main

    try:
        code = main(["guard", *words])
    except SystemExit as error:
        code = int(str(error.code))
    assert code == status
    assert text in " ".join(capsys.readouterr().err.split())
