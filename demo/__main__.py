"""The demo: a shop's cluster in the lab, five incidents, and what Kelpie says and does about them.

Everything runs on this machine, on loopback, and every number on the screen comes from this run. What follows
a $ is what a person would type. The pages at the end stay until Ctrl-C.
"""

import argparse
import os
import signal
import sys
import tempfile
import textwrap
import time
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from demo import clients, groups
from demo.commands import in_background, in_foreground, java_is_there, kelpie, paragraph
from demo.groups import AWAY, COMMITTED_ONLY, SLOW, Groups
from demo.incidents import coordinator_outage, expired_offsets, hanging_transaction, lost_label, slow_poller
from demo.shop import DemoFailed, Shop, create_topics, new_cluster, wait_until
from kelpie.cli.exit_status import ExitStatus
from kelpie.real.cluster_errors import ClusterRefused
from kelpie.real.ports import free, require

_RECORDS = 100
_REPORT_LINES, _OUTAGE_LINES, _TABLE_LINES = 64, 30, 26
_PLAN = {"first": 18, "last": 4}
_SPARK_LIMIT_S = 300.0
_PORT = 8088


class Demo:
    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self._began, self._step = time.monotonic(), 0
        self._tables = folder / "tables"
        evidence = folder / "evidence"
        self._landing, self._logs = evidence / "landing", evidence / "clients"
        clients.log_into(self._logs)
        self._shop = Shop(stack.enter_context(new_cluster(evidence)), evidence)
        self._groups = Groups()
        stack.callback(self._groups.stop)
        self._stack = stack
        self._hit: list[str] = []

    def run(self, *, tables: bool, pages: bool) -> None:
        self._open()
        with in_background(
            *("collect", "-b", self._shop.address, "--into", str(self._landing), "--every", "2s", "--quiet")
        ):
            self._incidents()
            self._outage()
            self._repair()
        if tables:
            self._compute()
        if pages:
            self._pages()
        self._tell("Done.")

    def _open(self) -> None:
        self._tell("A cluster of three brokers in this process, and a dozen groups of real clients.")
        create_topics(self._shop.cluster)
        writer = clients.Writer(self._shop.bootstrap, self._logs).start()
        self._stack.callback(writer.ask_to_stop)
        groups.begin(self._shop, self._groups, self._logs)
        readers = self._groups.readers.values()
        wait_until("every group reads", lambda: all(reader.read for reader in readers))
        libraries = sorted({reader.library for reader in readers})
        self._say(
            f"{len(readers)} groups read, with {', '.join(libraries)}. The twelfth comes with its incident."
        )

    def _incidents(self) -> None:
        shop, readers = self._shop, self._groups.readers
        wait_until("a first survey is there", lambda: any(self._landing.glob("[!.]*")))
        self._tell("Four incidents.")
        counted, told = lost_label.cause(shop, partial(groups.counted_group, shop, self._logs))
        readers[counted.group] = counted
        self._say(told)
        self._say(slow_poller.cause(shop, readers[SLOW]))
        self._say(expired_offsets.cause(shop, readers[AWAY]))
        self._say(hanging_transaction.cause(shop, readers[COMMITTED_ONLY], self._logs))
        self._tell("All groups at a glance, and what the doctor says, of the cluster and of the files.")
        kelpie("groups", "-b", shop.address)
        kelpie("doctor", "-b", shop.address, "--evidence", str(shop.evidence), first=_REPORT_LINES)

    def _outage(self) -> None:
        self._tell("The fifth: two brokers die.")
        self._hit = coordinator_outage.stricken(self._shop, list(self._groups.readers))
        self._say(coordinator_outage.cause(self._shop, list(self._groups.readers)))
        kelpie("doctor", "-b", self._shop.address, first=_OUTAGE_LINES)

    def _repair(self) -> None:
        hit = self._hit[0]
        self._tell(f"Move {hit} to a healthy coordinator, with its place.")
        plan = kelpie("rehome", "-b", self._shop.address, hit, "--apply", **_PLAN).text
        new = next(line.split("=")[1].split()[0] for line in plan.splitlines() if "group.id=" in line)
        reader = clients.ConfluentReader(
            self._shop.bootstrap, self._logs, new, self._groups.readers[hit].topic
        )
        self._groups.add(reader)
        wait_until(f"{new} reads", lambda: reader.read >= _RECORDS)
        self._say(f"A consumer of {new} went on where {hit} was: it has read {reader.read} records.")

    def _compute(self) -> None:
        self._tell(
            "The same night as tables, on Spark: surveys, logs, scrapes, and the offsets topic itself."
        )
        if not java_is_there():
            self._say("Java is missing (Spark needs 17 or newer), so there are no tables.")
            return
        sources = ("--from", str(self._shop.evidence), "-b", self._shop.address)
        command = ("pipeline", "stream", "--once", *sources, "--into", str(self._tables))
        if kelpie(*command, limit_s=_SPARK_LIMIT_S).status:
            self._say(
                "Spark gave up, as it may on a busy machine. The next start goes on where this one was."
            )
            kelpie(*command, limit_s=_SPARK_LIMIT_S)
        kelpie("doctor", "--tables", str(self._tables), first=_TABLE_LINES, limit_s=_SPARK_LIMIT_S)

    def _pages(self) -> None:
        self._tell("The same in a browser, while the shop goes on. Ctrl-C ends all of it.")
        try:
            require([_PORT])
            port = _PORT
        except ClusterRefused:
            (port,) = free(1)
        try:
            in_foreground(
                *("serve", "-b", self._shop.address, "--every", "5", "--listen", f"127.0.0.1:{port}"),
                *(("--tables", str(self._tables)) if self._tables.is_dir() else ()),
            )
        except KeyboardInterrupt:
            print()

    def _tell(self, text: str) -> None:
        self._step += 1
        paragraph(f"{self._step}. {text}  [{time.monotonic() - self._began:.0f} s]", indent="")

    def _say(self, text: str) -> None:
        paragraph(textwrap.fill(text, 100))


def _interrupted(*_: object) -> None:
    """Once is enough: what ends meanwhile is not to be disturbed."""
    for sign in (signal.SIGINT, signal.SIGTERM):
        signal.signal(sign, signal.SIG_IGN)
    raise KeyboardInterrupt


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m demo", description="Kelpie, shown on a shop's cluster.")
    parser.add_argument("--no-tables", action="store_true", help="without Spark")
    parser.add_argument("--no-pages", action="store_true", help="end after the report, for scripts")
    arguments = parser.parse_args()
    for sign in (signal.SIGINT, signal.SIGTERM):
        signal.signal(sign, _interrupted)
    folder = tempfile.TemporaryDirectory(prefix="kelpie-demo-", ignore_cleanup_errors=True)
    try:
        with folder as name, ExitStack() as stack:
            os.environ["KELPIE_STATE"] = str(Path(name) / "state")
            Demo(Path(name), stack).run(tables=not arguments.no_tables, pages=not arguments.no_pages)
    except KeyboardInterrupt:
        print("\nEnded before its end. Nothing is left running.", file=sys.stderr)
        return ExitStatus.INTERRUPTED
    except DemoFailed as failed:
        print(f"\n{failed}", file=sys.stderr)
        return ExitStatus.NO
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
