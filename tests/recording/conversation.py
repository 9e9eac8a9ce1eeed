"""A recorded conversation as a file: one frame a line, compressed."""

import base64
import json
import lzma
from collections.abc import Iterable, Iterator
from pathlib import Path

from tests.recording.proxy import Exchanged


def save(frames: Iterable[Exchanged], path: Path) -> None:
    with lzma.open(path, "wt", preset=9) as out:
        for it in frames:
            text = base64.b64encode(it.frame).decode()
            out.write(json.dumps([it.scene, it.connection, it.direction, text]) + "\n")


def load(path: Path) -> Iterator[Exchanged]:
    with lzma.open(path, "rt") as lines:
        for line in lines:
            scene, connection, direction, text = json.loads(line)
            yield Exchanged(scene, connection, direction, base64.b64decode(text))
