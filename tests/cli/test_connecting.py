"""The options by which every command reaches a cluster."""

import argparse
from pathlib import Path

import pytest

from kelpie.cli.command import CommandError
from kelpie.cli.connecting import add_connection_options, settings_from
from kelpie.client.address import Address
from kelpie.client.settings import Settings


def _settings(*words: str) -> Settings:
    parser = argparse.ArgumentParser()
    add_connection_options(parser)
    return settings_from(parser.parse_args(words))


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
