"""The options by which every command reaches a cluster."""

import argparse
from pathlib import Path

import pytest

from kelpie.cli.command import CommandError, CommandParser
from kelpie.cli.connecting import add_connection_options, settings_from
from kelpie.cli.environment import BOOTSTRAP, COMMAND_CONFIG
from kelpie.client.address import Address
from kelpie.client.settings import Settings


def _settings(*words: str) -> Settings:
    return settings_from(_parsed(*words))


def _parsed(*words: str) -> argparse.Namespace:
    """As `kelpie` does it."""
    parser = CommandParser(prog="kelpie")
    parser.add_argument("--evidence", nargs="+", default=[])
    add_connection_options(parser, instead=("evidence",))
    arguments = parser.parse_args(words)
    arguments.complete(arguments)
    return arguments


@pytest.fixture(autouse=True)
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Whoever runs the tests may have profiles and variables of their own."""
    for name in (BOOTSTRAP, COMMAND_CONFIG):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("KELPIE_CONFIG", str(tmp_path))
    return tmp_path


def test_addresses_and_timeout_are_taken_from_the_options() -> None:
    """--timeout limits an answer, and no connection takes longer than that."""
    settings = _settings("-b", "one:9092,two:9093", "--timeout", "1.5")
    assert settings.bootstrap == (Address("one", 9092), Address("two", 9093))
    assert (settings.request_timeout_s, settings.connect_timeout_s) == (1.5, 1.5)
    assert _settings("--bootstrap-server", "one:9092").request_timeout_s == 5.0


def test_properties_file_serves_too_and_options_win(tmp_path: Path) -> None:
    """As Kafka's own tools take it with --command-config."""
    file = tmp_path / "client.properties"
    file.write_text("bootstrap.servers=three:9092\nrequest.timeout.ms=7000\n")
    assert _settings("--command-config", str(file)).bootstrap == (Address("three", 9092),)
    assert _settings("--command-config", str(file)).request_timeout_s == 7.0
    assert _settings("--command-config", str(file), "-b", "one:9092").bootstrap == (Address("one", 9092),)
    assert _settings("--command-config", str(file), "--timeout", "2").request_timeout_s == 2.0


def test_settings_that_have_no_effect_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """On stderr: what a person forbids must not be offered without a word."""
    file = tmp_path / "client.properties"
    file.write_text("security.protocol=SSL\nssl.enabled.protocols=TLSv1.1,TLSv1.3\nretries=3\n")
    _settings("--command-config", str(file), "-b", "one:9092")
    assert capsys.readouterr() == ("", f"{file}: not used here: retries, ssl.enabled.protocols: TLSv1.1.\n")
    file.write_text("security.protocol=SSL\nssl.enabled.protocols=TLSv1.3\n")
    _settings("--command-config", str(file), "-b", "one:9092")
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ((), "-b HOST:PORT"),
        (("-b", "one"), "the port is missing"),
        (("--command-config", "/nowhere/client.properties"), "cannot be read"),
    ],
)
def test_what_cannot_be_is_said(words: tuple[str, ...], text: str) -> None:
    """With what to write instead, and status 64."""
    with pytest.raises(CommandError, match=text) as raised:
        _settings(*words)
    assert raised.value.status == 64


@pytest.mark.parametrize("timeout", ["0", "-1", "soon", "nan", "inf", "100000"])
def test_timeouts_that_cannot_be_are_refused(timeout: str, capsys: pytest.CaptureFixture[str]) -> None:
    """argparse says so."""
    with pytest.raises(SystemExit):
        _settings("-b", "one:9092", "--timeout", timeout)
    assert "number of seconds" in capsys.readouterr().err


def test_the_environment_stands_for_what_the_options_leave_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """People set it once a day; an option still wins."""
    file = tmp_path / "client.properties"
    file.write_text("request.timeout.ms=7000\n")
    monkeypatch.setenv(BOOTSTRAP, "env:9092")
    assert _settings().bootstrap == (Address("env", 9092),)
    monkeypatch.setenv(COMMAND_CONFIG, str(file))
    assert _settings().request_timeout_s == 7.0
    assert _settings("-b", "one:9092").bootstrap == (Address("one", 9092),)
    assert _settings("-b", "one:9092").request_timeout_s == 7.0


def test_files_are_not_mixed_with_the_cluster_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """They may be of another cluster. Whoever wants both says so."""
    monkeypatch.setenv(BOOTSTRAP, "env:9092")
    assert _parsed("--evidence", "incident").bootstrap_server is None
    assert _parsed("--evidence", "incident", "-b", "one:9092").bootstrap_server == "one:9092"


def test_a_profile_names_a_cluster(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It wins over the environment, and an option wins over it; paths are relative to its file."""
    (config / "profiles.toml").write_text(
        '[production]\nbootstrap = "p1:9092,p2:9092"\ncommand-config = "p.properties"\n[test]\n'
        'bootstrap = "t1:9092"\n'
    )
    (config / "p.properties").write_text("request.timeout.ms=7000\n")
    monkeypatch.setenv(BOOTSTRAP, "env:9092")
    monkeypatch.setenv(COMMAND_CONFIG, "/nowhere/client.properties")
    assert _settings("--profile", "test").bootstrap == (Address("t1", 9092),)
    production = _settings("--profile", "production")
    assert (production.bootstrap[1], production.request_timeout_s) == (Address("p2", 9092), 7.0)
    assert _settings("--profile", "production", "-b", "one:9092").bootstrap == (Address("one", 9092),)
    assert _parsed("--profile", "test", "--evidence", "incident").bootstrap_server == "t1:9092"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "there is no"),
        ("[other]\n", "has no profile 'production'. It has: other"),
        ("[production\n", "cannot be read"),
        ("production = 1\n", "A profile is a table"),
        ("[production]\nbroker = 'one:9092'\n", "broker means nothing here"),
        ("[production]\nbootstrap = 9092\n", "must be text"),
    ],
)
def test_a_profile_that_cannot_be_used_is_explained(config: Path, text: str | None, said: str) -> None:
    """With the file and what to write."""
    if text is not None:
        (config / "profiles.toml").write_text(text)
    with pytest.raises(CommandError, match=said) as raised:
        _settings("--profile", "production")
    assert "profiles.toml" in str(raised.value)
