"""What Python workers on this machine are forked from: PySpark's daemon, with the decoder loaded already.

Arrow, numba and compiled code take more than a second to load, as long as two million records take to be
read. Here they are loaded once, and not by each worker. When Kelpie is new on a machine, one process
compiles, and not all of them at once.
"""

import gc
import struct
from contextlib import suppress
from io import BytesIO

MODULE = __name__


def _load() -> None:
    """By reading a record."""
    from kelpie.pipeline.decoding.segment import Reader  # noqa: PLC0415 - this may fail as a whole.
    from kelpie.pipeline.sources.logs import task as _logs  # noqa: F401, PLC0415
    from kelpie.pipeline.sources.segments import task  # noqa: PLC0415
    from kelpie.wire.records import Record, write_batch  # noqa: PLC0415

    key = struct.pack(">hh1sh1si", 1, 1, b"g", 1, b"t", 0)
    value = struct.pack(">hqihq", 3, 0, -1, 0, 0)
    for read in Reader(BytesIO(write_batch([Record(0, 0, key=key, value=value)]))):
        for _ in task.tables_of(read):
            pass


def main() -> None:
    from pyspark.daemon import manager  # noqa: PLC0415 - others want the name of this module only.

    with suppress(Exception):  # Whatever is wrong, a task that needs it will say.
        _load()
    gc.freeze()  # Workers need not look through all of that for garbage, nor copy it for that.
    manager()


if __name__ == "__main__":
    main()
