"""The guardian: a process of its own that cleans up after its parent, however the parent ends.

It reads one JSON order per line from its standard input:

    ["watch", PID, START]   end this process when the parent is gone
    ["forget", PID, START]  it has ended by itself
    ["own", FOLDER]         remove this folder when the parent is gone
    ["disown", FOLDER]
    ["release"]             the parent lets everything live on; go away
    ["clean"]               clean up now; go away

The end of the input means that the parent died. A child that the parent forked may hold the pipe open
beyond that, so the guardian also checks its parent's pid. The standard library only: it starts in
milliseconds, and nothing that breaks the parent breaks it.
"""

import contextlib
import json
import os
import select
import shutil
import signal
import sys
import time

from kelpie.real.identity import ProcessIdentity

_CHECK_S = 0.5
_END_LIMIT_S = 10.0


def main() -> None:
    parent = int(sys.argv[1])
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    processes: set[ProcessIdentity] = set()
    folders: set[str] = set()
    if _listen(parent, processes, folders):
        clean(processes, folders)


def clean(processes: set[ProcessIdentity], folders: set[str]) -> None:
    for process in processes:
        process.signal(signal.SIGKILL)
    deadline = time.monotonic() + _END_LIMIT_S
    # A dying process may still write: its folder goes after it.
    while any(process.alive for process in processes) and time.monotonic() < deadline:
        time.sleep(0.01)
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)


def _listen(parent: int, processes: set[ProcessIdentity], folders: set[str]) -> bool:
    """Follow orders until the last one. True: clean up now."""
    pending = b""
    while True:
        ready, _, _ = select.select([0], [], [], _CHECK_S)
        if not ready:
            if os.getppid() != parent:
                return True
            continue
        chunk = os.read(0, 65_536)
        if not chunk:
            return True
        *lines, pending = (pending + chunk).split(b"\n")
        for line in lines:
            # Half an order is what a dying parent leaves; the end of the input follows.
            with contextlib.suppress(ValueError):
                order, *values = json.loads(line)
                if order == "release":
                    return False
                if order == "clean":
                    return True
                _obey(order, values, processes, folders)


def _obey(order: str, values: list[object], processes: set[ProcessIdentity], folders: set[str]) -> None:
    match order, values:
        case "watch", [int(pid), str(start)]:
            processes.add(ProcessIdentity(pid, start))
        case "forget", [int(pid), str(start)]:
            processes.discard(ProcessIdentity(pid, start))
        case "own", [str(folder)]:
            folders.add(folder)
        case "disown", [str(folder)]:
            folders.discard(folder)


if __name__ == "__main__":
    main()
