"""Scripts of `kelpie completion`, read by the shells themselves where they are installed."""

import os
import pty
import select
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from kelpie.cli import main
from kelpie.cli.catalogue import COMMANDS
from kelpie.cli.completion import SHELLS
from tests import programs


@pytest.fixture(scope="module")
def scripts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """One file for each shell."""
    import contextlib
    import io

    folder = tmp_path_factory.mktemp("completion")
    made = {}
    for shell in SHELLS:
        text = io.StringIO()
        with contextlib.redirect_stdout(text):
            assert main(["completion", shell]) == 0
        made[shell] = folder / f"kelpie.{shell}"
        made[shell].write_text(text.getvalue(), encoding="utf-8")
    return made


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_shell_reads_the_script(shell: str, scripts: dict[str, Path]) -> None:
    """Without complaint: help texts hold quotes, brackets, colons and signs beyond ASCII."""
    done = subprocess.run(
        [programs.need(shell), "-n", scripts[shell]], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("shell", SHELLS)
def test_every_command_is_in_the_script(shell: str, scripts: dict[str, Path]) -> None:
    """And options of commands below commands."""
    text = scripts[shell].read_text(encoding="utf-8")
    assert [name for name in COMMANDS if name not in text] == []
    assert "bootstrap-server" in text
    assert "no-wait" in text


def _completed(script: Path, *words: str, folder: Path) -> list[str]:
    """What bash offers for the last of these words."""
    program = f"""
    source {script}
    COMP_WORDS=({" ".join(f"'{word}'" for word in words)})
    COMP_CWORD={len(words) - 1}
    COMP_LINE="{" ".join(words)}"
    COMP_POINT=${{#COMP_LINE}}
    compopt() {{ :; }}
    $(complete -p kelpie | sed 's/.*-F \\([^ ]*\\) .*/\\1/') kelpie '{words[-1]}' '{words[-2]}'
    printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    done = subprocess.run(
        [programs.need("bash"), "--norc", "-c", program],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        cwd=folder,
    )
    assert done.stderr == ""
    return sorted(word.rstrip() for word in done.stdout.splitlines() if word.strip())


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (["kelpie", "gr"], ["groups"]),
        (["kelpie", "re"], ["real", "reassign-offsets-topic", "rehome", "reset"]),
        (["kelpie", "doctor", "--ev"], ["--evidence"]),
        (["kelpie", "groups", "--sort", "lag-"], ["lag-per-min", "lag-time"]),
        (["kelpie", "lab", "r"], ["run"]),
        (["kelpie", "lab", "run", "slow"], ["slow-poll"]),
        (["kelpie", "explain", "KLP40"], [f"KLP40{number}" for number in range(1, 8)]),
        (["kelpie", "doctor", "--evidence", "inc"], ["incident"]),
        (["kelpie", "completion", "f"], ["fish"]),
    ],
)
def test_bash_completes(
    words: list[str], offered: list[str], scripts: dict[str, Path], tmp_path: Path
) -> None:
    """Commands, options, their words, folders."""
    (tmp_path / "incident").mkdir()
    assert _completed(scripts["bash"], *words, folder=tmp_path) == offered


def test_fish_completes(scripts: dict[str, Path], tmp_path: Path) -> None:
    """Fish tells without a terminal what it would offer."""
    program = f"source {scripts['fish']}; complete -C 'kelpie gr'; complete -C 'kelpie lab run slow'"
    done = subprocess.run(
        [programs.need("fish"), "--no-config", "-c", program],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
        cwd=tmp_path,
    )
    assert [line.split("\t")[0] for line in done.stdout.splitlines()] == ["groups", "slow-poll"]


@pytest.mark.parametrize(
    ("typed", "completed"),
    [("kelpie gr", "kelpie groups"), ("kelpie lab run slow", "kelpie lab run slow-poll")],
)
def test_zsh_completes(typed: str, completed: str, scripts: dict[str, Path], tmp_path: Path) -> None:
    """Zsh completes on a terminal only: it gets one, and Tab is pressed there."""
    zsh = programs.need("zsh")
    shutil.copy(scripts["zsh"], tmp_path / "_kelpie")
    ours, of_shell = pty.openpty()
    shell = subprocess.Popen(
        [zsh, "-f", "-i"],
        stdin=of_shell,
        stdout=of_shell,
        stderr=of_shell,
        cwd=tmp_path,
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path), "TERM": "dumb"},
        start_new_session=True,
    )
    try:
        begin = f"fpath=({tmp_path} $fpath); autoload -U compinit; compinit -u -D; PS1='ready''> '\n"
        os.write(ours, begin.encode())
        _read_until(ours, "ready> ")
        os.write(ours, f"{typed}\t".encode())
        assert completed in _read_until(ours, completed)
    finally:
        shell.kill()
        shell.wait()
        os.close(ours)
        os.close(of_shell)


def _read_until(terminal: int, text: str, limit_s: float = 60) -> str:
    """What the terminal shows, up to the end of this text, or all that comes in time."""
    shown, deadline = "", time.monotonic() + limit_s
    while text not in shown and time.monotonic() < deadline:
        if select.select([terminal], [], [], 0.5)[0]:
            shown += os.read(terminal, 4096).decode(errors="replace")
    return shown
