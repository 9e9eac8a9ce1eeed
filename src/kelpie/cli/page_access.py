"""Who may reach the pages of `kelpie serve`: where it listens, how people log in, what they may do."""

import argparse
import ipaddress
import socket
import ssl
import sys
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from kelpie import folders
from kelpie.cli.command import CommandError, option
from kelpie.cli.exit_status import ExitStatus
from kelpie.cli.terminal import folded
from kelpie.model.quoting import harmless

if TYPE_CHECKING:
    from kelpie.web.access.access import Access
    from kelpie.web.access.passwords import PasswordFile
    from kelpie.web.audit_log import AuditLog

PORT = 8088
NAMES_OF_LOOPBACK = ("localhost", "127.0.0.1", "[::1]")
_EVERY_ADDRESS = ("0.0.0.0", "[::]", "::")  # noqa: S104 - what a person may ask for.
_HEADER = "X-Forwarded-User"


def add_access_options(parser: argparse.ArgumentParser) -> None:
    options = parser.add_argument_group("access")
    option(
        options,
        "--listen HOST:PORT",
        f"where; 127.0.0.1:{PORT} if left out. Other than loopback addresses need a login",
        default=f"127.0.0.1:{PORT}",
    )
    option(
        options,
        "--host-name NAME",
        "a name under which browsers reach the pages, besides that of --listen, this machine's and "
        "localhost; may be repeated",
        action="append",
        default=[],
    )
    login = options.add_mutually_exclusive_group()
    option(
        login,
        "--passwords FILE",
        "people log in with a name and a password of this file, as htpasswd -B writes it",
        type=Path,
    )
    option(
        login,
        "--login-header NAME",
        f"a proxy has logged people in, and names them in this header, as {_HEADER}; needs --trusted-proxy",
    )
    option(
        options,
        "--trusted-proxy ADDRESS",
        "the proxy in front, which speaks https with browsers: an address or a network. Its headers are "
        "believed, and others are refused; may be repeated",
        action="append",
        default=[],
    )
    option(options, "--certificate FILE", "speak https: the chain of certificates, in PEM", type=Path)
    option(options, "--key FILE", "the private key of --certificate, in PEM", type=Path)
    option(
        options,
        "--allow-repairs",
        "people who have logged in may make plans, apply and undo them; needs a login and a cluster (-b)",
    )
    option(
        options,
        "--audit FILE",
        "where it is noted who logs in and what is repaired; audit.jsonl in $KELPIE_STATE if left out",
        type=Path,
    )


@dataclass(frozen=True, slots=True)
class Listening:
    """Where the server listens, and under which names browsers may ask."""

    host: str
    port: int
    host_names: tuple[str, ...]
    certificate: Path | None
    key: Path | None

    @property
    def address(self) -> str:
        shown = self.host_names[0] if self.host in _EVERY_ADDRESS else self.host
        return f"{'http' if self.certificate is None else 'https'}://{shown}:{self.port}/"


def listening_from(arguments: argparse.Namespace) -> Listening:
    """Raises CommandError."""
    host, port = host_and_port("--listen", arguments.listen)
    if not is_loopback(host):
        _check_login(arguments, arguments.listen, port)
    if (arguments.certificate is None) != (arguments.key is None):
        raise CommandError("--certificate and --key belong together: give both.")
    if arguments.certificate is not None:
        _check_certificate(arguments.certificate, arguments.key)
    names = [*arguments.host_name, socket.gethostname()]
    bad = [name for name in names if not name or "*" in name or ":" in name.strip("[]") or "/" in name]
    if bad:
        raise CommandError(f"--host-name {bad[0]!r} is no name of a host; give it without a port.")
    if host not in _EVERY_ADDRESS:
        names = [host, *names]
    return Listening(
        host, port, (*dict.fromkeys((*names, *NAMES_OF_LOOPBACK)),), arguments.certificate, arguments.key
    )


def host_and_port(name: str, text: str) -> tuple[str, int]:
    """Of an option's value. Raises CommandError."""
    host, colon, port = text.rpartition(":")
    if not colon or not host or not port.isascii() or not port.isdecimal() or int(port) > 65_535:
        raise CommandError(f"{name} {text!r} is no address. Write HOST:PORT, as in 127.0.0.1:{PORT}.")
    return host, int(port)


def access_from(
    arguments: argparse.Namespace, stack: ExitStack
) -> "tuple[Access, AuditLog] | tuple[None, None]":
    """None: nobody has to log in. Raises CommandError."""
    from kelpie.web.access.access import Access  # noqa: PLC0415 - needs the extra web.
    from kelpie.web.access.addresses import Proxies  # noqa: PLC0415
    from kelpie.web.access.header_login import HeaderLogin  # noqa: PLC0415
    from kelpie.web.access.password_login import PasswordLogin  # noqa: PLC0415

    try:
        proxies = Proxies.parse(arguments.trusted_proxy)
    except ValueError as error:
        raise CommandError(f"--trusted-proxy: {error}. Write 10.0.0.5, or 10.0.0.0/24.") from None
    if arguments.login_header is None and arguments.passwords is None:
        if proxies:
            raise CommandError("--trusted-proxy is for a login: give --login-header or --passwords, too.")
        if arguments.allow_repairs:
            raise CommandError(
                "--allow-repairs needs a login, so that it is known who changes the cluster: --passwords "
                f"FILE (htpasswd -B -c FILE NAME makes one), or --login-header {_HEADER} with "
                "--trusted-proxy."
            )
        return None, None
    if arguments.login_header is not None:
        _check_header(arguments.login_header, is_proxied=bool(proxies))
    audit = _audit(arguments, stack)
    login = (
        HeaderLogin(arguments.login_header)
        if arguments.login_header is not None
        else PasswordLogin(_password_file(arguments.passwords), audit)
    )
    is_encrypted = bool(proxies) or arguments.certificate is not None
    return Access(login, proxies, is_encrypted), audit


def _check_login(arguments: argparse.Namespace, listen: str, port: int) -> None:
    if arguments.passwords is None and arguments.login_header is None:
        raise CommandError(
            f"--listen {listen}: whoever reaches this machine could read along. Give a login: --passwords "
            "FILE (htpasswd -B -c FILE NAME makes one) with --certificate and --key, or --login-header "
            f"{_HEADER} with --trusted-proxy ADDRESS. Or stay on 127.0.0.1:{port}, and reach it from "
            f"elsewhere through ssh -L {port}:127.0.0.1:{port} HOST."
        )
    if arguments.certificate is None and not arguments.trusted_proxy:
        raise CommandError(
            f"--listen {listen}: passwords and sessions would cross the network in plain text. Give "
            "--certificate and --key, or put a proxy that speaks https in front: --trusted-proxy ADDRESS."
        )


def _check_header(name: str, *, is_proxied: bool) -> None:
    if not name or not all(sign.isascii() and (sign.isalnum() or sign == "-") for sign in name):
        raise CommandError(f"--login-header {name!r} is no name of a header. Write it as {_HEADER}.")
    if not is_proxied:
        raise CommandError(
            f"--login-header {name}: anybody can send this header. Name the proxy that sets it: "
            "--trusted-proxy ADDRESS."
        )


def _check_certificate(certificate: Path, key: Path) -> None:
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key, password=lambda: "")
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise CommandError(
            f"--certificate {certificate} with --key {key} cannot be used: {why}. Both are files in PEM, and "
            "the key has no password."
        ) from None


def _password_file(path: Path) -> "PasswordFile":
    from kelpie.web.access.passwords import BadPasswords, PasswordFile  # noqa: PLC0415

    try:
        file = PasswordFile(path, _complain)
        if file.is_readable_by_others:
            _complain(f"{path} can be read by others, who can try to guess passwords. Try: chmod 600 {path}")
    except (BadPasswords, OSError) as error:
        raise CommandError(f"--passwords: {error}") from None
    return file


def _audit(arguments: argparse.Namespace, stack: ExitStack) -> "AuditLog":
    from kelpie.web.audit_log import AuditLog, BadAuditLog  # noqa: PLC0415

    try:
        audit = AuditLog(arguments.audit or folders.state() / "audit.jsonl")
    except BadAuditLog as error:
        raise CommandError(str(error), ExitStatus.CANNOT_WRITE) from None
    stack.callback(audit.close)
    return audit


def _complain(text: str) -> None:
    print(folded(harmless(text), "kelpie serve: "), file=sys.stderr, flush=True)


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
