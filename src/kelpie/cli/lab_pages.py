"""The pages of `kelpie serve` for a cluster of the lab, with buttons for faults, while the cluster is up."""

import asyncio
import socket
import tempfile
import threading
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from kelpie.cli.command import CommandError
from kelpie.cli.exit_status import ExitStatus
from kelpie.cli.page_access import NAMES_OF_LOOPBACK, host_and_port, is_loopback
from kelpie.client.settings import Settings
from kelpie.examination import Examination
from kelpie.lab.cluster import Cluster
from kelpie.store import Store

if TYPE_CHECKING:
    from kelpie.web.site import Section

_NAME = "lab"
_EVERY_S = 2.0


def bound(listen: str) -> socket.socket:
    """A socket on loopback, for pages without a login. Raises CommandError."""
    host, port = host_and_port("--serve", listen)
    if not is_loopback(host):
        raise CommandError(f"--serve {listen}: pages of the lab have no login; only loopback can be used.")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host.strip("[]"), port), family=family)
    except OSError as error:
        text = f"It cannot listen at {listen}: {error.strerror}."
        raise CommandError(text, ExitStatus.CANNOT_WRITE) from None


@asynccontextmanager
async def lab_pages(cluster: Cluster, listener: socket.socket) -> AsyncIterator[str]:
    """Their address. What is kept of the cluster ends with them. Raises CommandError."""
    loop = asyncio.get_running_loop()
    with ExitStack() as stack:
        stack.callback(listener.close)
        opened = ExitStack()
        try:
            await asyncio.to_thread(_open, opened, cluster, listener, loop)
            host, port = listener.getsockname()[:2]
            yield f"http://{f'[{host}]' if ':' in host else host}:{port}/lab"
        finally:
            # In a thread: what ends there may still talk to the cluster, which needs this loop.
            await asyncio.to_thread(opened.close)


def _open(
    stack: ExitStack, cluster: Cluster, listener: socket.socket, loop: asyncio.AbstractEventLoop
) -> None:
    try:
        from kelpie.web.access.access import Access  # noqa: PLC0415 - only pages need a web server.
        from kelpie.web.application import application  # noqa: PLC0415
        from kelpie.web.audit_log import AuditLog  # noqa: PLC0415
        from kelpie.web.lab_controls import LabSection  # noqa: PLC0415
        from kelpie.web.repairs.requests import RepairTarget  # noqa: PLC0415
        from kelpie.web.repairs.section import RepairSection  # noqa: PLC0415
        from kelpie.web.repairs.workshop import Workshop  # noqa: PLC0415
        from kelpie.web.serving.server import PageServer  # noqa: PLC0415
        from kelpie.web.watch import Watch  # noqa: PLC0415
    except ImportError as error:
        raise CommandError(f"Pages need a web server: pip install 'kelpie-kafka[web]'. ({error})") from None
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="kelpie-lab-")))
    store = Store(folder / "store")
    settings = Settings.of(cluster.bootstrap_servers)
    watch = stack.enter_context(Watch(_NAME, Examination(settings, store=store), _EVERY_S))
    audit = AuditLog(folder / "audit.jsonl")
    stack.callback(audit.close)
    workshop = stack.enter_context(Workshop([RepairTarget(_NAME, settings, store)], audit))
    sections: list[Section] = [LabSection(cluster, watch, loop), RepairSection(workshop)]
    app = application([watch], NAMES_OF_LOOPBACK, access=Access(), sections=sections)
    server = PageServer(app)
    thread = threading.Thread(target=server.run, args=([listener],), name="kelpie-pages", daemon=True)
    thread.start()

    def end() -> None:
        server.should_exit = True
        thread.join()

    stack.callback(end)
