"""What all commands have in common: names that are no text, outputs that cannot be written, Ctrl-C, usage."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from kelpie.cli import main
from kelpie.cli.catalogue import COMMANDS

_KELPIE = [sys.executable, "-m", "kelpie"]
_SLOW_IMPORT = """
import signal, sys, time, types
signal.signal(signal.SIGINT, signal.default_int_handler)
class Slow:
    def find_spec(self, name, path=None, target=None):
        if name == "kelpie.cli.explain":
            print("importing", flush=True)
            time.sleep(60)
sys.meta_path.insert(0, Slow())
from kelpie.cli import main
sys.exit(main(["explain"]))
"""


def run(*words: str | bytes, stdout: int = subprocess.PIPE) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [*_KELPIE, *words], stdout=stdout, stderr=subprocess.PIPE, text=True, timeout=60, check=False
    )


@pytest.mark.parametrize("command", ["doctor", "probe", "rehome", "reset"])
def test_a_name_that_is_not_utf_8_is_told(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A shell hands over any bytes, and Python keeps them as surrogates, which nothing can encode."""
    name = os.fsdecode(b"bill\xff")
    words = ["--to-earliest"] if command == "reset" else []
    assert main([command, "-b", "127.0.0.1:1", *words, name]) == 64
    error = capsys.readouterr().err
    assert error.startswith(f"kelpie {command}: 'bill\\udcff' is not UTF-8")


def test_a_file_may_have_a_name_that_is_not_utf_8(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """File systems take any bytes; only names of Kafka are text."""
    folder = os.fsencode(tmp_path) + b"/disks\xff"
    os.mkdir(folder)
    assert main(["offsets", "recover", os.fsdecode(folder)]) == 1
    assert "No committed offsets" in capsys.readouterr().err


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no full device here")
@pytest.mark.parametrize("words", [["explain"], ["explain", "KLP101"], ["--help"]])
def test_an_output_that_cannot_be_written_is_one_line(words: list[str]) -> None:
    """A full disk is a fault of the machine. Short and long outputs: written at the end, or before."""
    with Path("/dev/full").open("w") as full:
        done = run(*words, stdout=full.fileno())
    assert done.returncode == 74
    assert re.fullmatch(r"kelpie[ a-z]*: Writing failed: No space left on device\.\n", done.stderr)


def test_a_reader_that_goes_away_is_no_error() -> None:
    """kelpie … | head -1."""
    with subprocess.Popen(
        [*_KELPIE, "names", "--partition", "0", "--partitions", "1", "-n", "30000"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline()
        process.stdout.close()
        assert process.stderr is not None
        assert process.stderr.read() == b""
        assert process.wait(60) == 141


def test_ctrl_c_while_modules_are_imported_is_one_line() -> None:
    """In the first second nothing but imports goes on."""
    with subprocess.Popen(
        [sys.executable, "-c", _SLOW_IMPORT], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "importing\n"
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
        assert (process.returncode, errors) == (130, "kelpie explain: interrupted.\n")


@pytest.mark.parametrize("command", COMMANDS)
def test_bad_usage_has_one_status(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    """64 for every command: scripts tell a typing error from a finding."""
    with pytest.raises(SystemExit) as ended:
        main([command, "--no-such-option"])
    assert ended.value.code == 64
    assert "usage: kelpie" in capsys.readouterr().err
