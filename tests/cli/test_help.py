"""Help, --version, and what is said about words that do not exist."""

import re
import shlex

import pytest

from kelpie import __version__
from kelpie.cli import main, parser
from kelpie.cli.catalogue import CATALOGUE, COMMANDS
from kelpie.cli.command import CommandParser
from kelpie.cli.exit_status import ExitStatus
from kelpie.cli.reference import leaves

LEAVES = {leaf.prog: leaf for leaf in leaves(parser())}


def _help(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    with pytest.raises(SystemExit) as ended:
        main([*words, "--help"])
    assert ended.value.code == 0
    return capsys.readouterr().out


def _mistake(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """What standard error says."""
    try:
        status = main(list(words))
    except SystemExit as ended:
        status = int(str(ended.code))
    assert status == ExitStatus.USAGE
    return capsys.readouterr().err


def test_the_overview_has_all_commands_in_groups_a_line_each(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """On 80 columns no line about a command is folded: people look for names where lines begin."""
    monkeypatch.setenv("COLUMNS", "80")
    text = _help(capsys)
    lines = text.splitlines()
    for title, commands in CATALOGUE.items():
        at = lines.index(f"{title}:")
        rows = [re.split(r"  +", line.strip()) for line in lines[at + 1 : at + 1 + len(commands)]]
        assert rows == [[name, summary] for name, summary in commands.items()]
    assert max(map(len, lines)) <= 80
    assert all(f"{int(status):<5}{status.meaning}" in text for status in ExitStatus)


def test_the_version_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    """The first thing that is asked in a bug report."""
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out.startswith(f"kelpie {__version__} (Python 3.")


def test_every_command_is_in_the_catalogue() -> None:
    """A module with a command that no help lists is found by nobody."""
    assert {prog.split()[1] for prog in LEAVES} == set(COMMANDS)


@pytest.mark.parametrize("prog", LEAVES)
@pytest.mark.parametrize("width", [60, 80, 160])
def test_help_fits_the_terminal_and_has_all_parts(
    prog: str, width: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a manual page: usage, options, exit status, examples. Sentences have at most 120 columns."""
    monkeypatch.setenv("COLUMNS", str(width))
    text = _help(capsys, *prog.split()[1:])
    assert text.startswith(f"usage: {prog}")
    assert "\nexit status:\n  0" in text
    prose, examples = text.split("\nexamples:\n")
    examples_of = [line for line in examples.splitlines() if line.startswith("  ") and line[2] != " "]
    assert examples_of == [f"  {line}" for line in LEAVES[prog].manual.examples]
    names = [line for line in prose.splitlines() if len(line) > min(width, 120)]
    assert [line for line in names if line.count(" ") > 8] == []


@pytest.mark.parametrize(
    ("prog", "example"), [(prog, line) for prog, leaf in LEAVES.items() for line in leaf.manual.examples]
)
def test_every_example_is_understood(prog: str, example: str) -> None:
    """By the command under which it stands. People paste examples."""
    line = example.rpartition("| ")[2].partition(" > ")[0]
    words = shlex.split(line, comments=False)
    assert words[0] == "kelpie"
    assert " ".join(words).startswith(prog)
    arguments = parser(words[1]).parse_args(words[1:])
    assert arguments.run == LEAVES[prog].get_default("run") or prog.startswith(("kelpie real", "kelpie lab"))


def test_every_command_has_an_example_and_says_what_0_means() -> None:
    """One for the usual call at least."""
    assert [prog for prog, leaf in LEAVES.items() if not leaf.manual.examples] == []
    assert [prog for prog, leaf in LEAVES.items() if ExitStatus.OK not in leaf.manual.statuses] == []


MISTYPED = [
    (["docter"], "there is no command 'docter'. Did you mean doctor? kelpie --help lists them all."),
    (["reasign-offsets-topic"], "Did you mean reassign-offsets-topic?"),
    (["xyzzy"], "there is no command 'xyzzy'. kelpie --help lists them all."),
    (["doctor", "--evidense", "x"], "there is no option --evidense. Did you mean --evidence?"),
    (["consume", "--grop", "g", "--topic", "t"], "there is no option --grop. Did you mean --group?"),
    (["doctor", "--xyzzy"], "there is no option --xyzzy. kelpie doctor --help lists them."),
    (["lab", "rnu"], "there is no 'rnu'. Did you mean run? Choose up, list, run."),
    (["groups", "--sort", "lag-tim"], "there is no 'lag-tim'. Did you mean lag-time"),
    (["explain", "KLP1011"], "There is no finding 'KLP1011'. Did you mean"),
    (["doctor", "-b", "x:1", "--code", "rebalance-strom"], "Did you mean rebalance-storm or"),
    (["ack", "KLP102x", "--until", "3d", "--why", "x"], "There is no finding 'KLP102x'. Did you mean KLP102"),
    (["lab", "run", "slow-pol"], "There is no scenario 'slow-pol'. Did you mean slow-poll? kelpie lab list"),
    (["completion", "bahs"], "there is no 'bahs'. Did you mean bash?"),
]


@pytest.mark.parametrize(("words", "said"), MISTYPED)
def test_a_mistyped_word_is_told_with_what_was_meant(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Commands, options, choices, rules, scenarios."""
    assert said in _mistake(capsys, *words)


def test_an_option_behind_two_dashes_is_none(capsys: pytest.CaptureFixture[str]) -> None:
    """What follows "--" are names: a group may be called --evidense."""
    arguments = parser("groups").parse_args(["groups", "--", "--evidense"])
    assert arguments.groups == ["--evidense"]
    words = ["guard", "--", "./consumer", "--whatever"]
    assert parser("guard").parse_args(words).words == ["--", "./consumer", "--whatever"]


def test_usage_names_what_must_be_given() -> None:
    """The rest is "[options]": twenty options on top of a help are read by nobody."""
    assert LEAVES["kelpie consume"].format_usage() == "usage: kelpie consume [options] --group G --topic T\n"
    assert LEAVES["kelpie doctor"].format_usage() == "usage: kelpie doctor [options] [GROUP ...]\n"
    usage = " ".join(LEAVES["kelpie reset"].format_usage().split())
    assert "(--to-last-known [DIR ...] | --to-datetime T | --to-earliest |" in usage
    assert usage.endswith(") GROUP")


def test_all_parsers_explain_mistakes() -> None:
    """A plain parser of argparse ends with status 2, which means something critical."""
    assert {type(leaf) for leaf in LEAVES.values()} == {CommandParser}
