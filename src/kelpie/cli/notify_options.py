"""Options of `kelpie doctor --watch --notify`: where changes are sent, how, with which headers."""

import argparse
import os
import sys
from pathlib import Path

from kelpie.cli.command import CommandError, option, reads
from kelpie.cli.environment import NOTIFY_HEADER
from kelpie.examination.webhook import BadWebhook, Format, Notifier, Webhook
from kelpie.model.quoting import harmless

_LARGEST = 64 * 1024


def add_notify_options(parser: argparse.ArgumentParser) -> None:
    reads(parser, NOTIFY_HEADER)
    option(
        parser,
        "--notify URL",
        "with --watch: send what changes to this address, as JSON by POST. Redirects are not followed",
    )
    option(
        parser,
        "--notify-format WORD",
        "kelpie: findings that are new and gone; alertmanager: alerts for its /api/v2/alerts. %(default)s if "
        "left out",
        choices=tuple(each.value for each in Format),
        default=Format.KELPIE.value,
    )
    option(
        parser,
        "--notify-headers FILE",
        f"headers to send along, a line for each, as in Authorization: Bearer …; ${NOTIFY_HEADER} has one",
        type=Path,
    )


def notifier_from(arguments: argparse.Namespace) -> Notifier | None:
    """Raises CommandError."""
    if arguments.notify is None:
        return None
    if arguments.watch is None:
        raise CommandError("--notify tells of changes: it needs --watch.")
    try:
        webhook = Webhook(arguments.notify, _headers(arguments.notify_headers))
    except BadWebhook as error:
        raise CommandError(f"--notify: {error}.") from None
    cluster = arguments.profile or arguments.bootstrap_server or arguments.zookeeper or ""

    def say(text: str) -> None:
        print(f"kelpie doctor: {harmless(text)}", file=sys.stderr, flush=True)

    return Notifier(webhook, Format(arguments.notify_format), cluster, say)


def _headers(path: Path | None) -> dict[str, str]:
    """Of the file and of the environment. Raises CommandError and BadWebhook; neither quotes a value."""
    lines = [os.environ[NOTIFY_HEADER]] if os.environ.get(NOTIFY_HEADER) else []
    if path is not None:
        try:
            with path.open(encoding="utf-8") as file:
                lines += file.read(_LARGEST).splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise CommandError(f"--notify-headers {path}: {error}") from None
    headers = {}
    for line in filter(str.strip, lines):
        name, colon, value = line.partition(":")
        if not colon:
            raise BadWebhook("a header is written as NAME: VALUE")
        headers[name.strip()] = value.strip()
    return headers
