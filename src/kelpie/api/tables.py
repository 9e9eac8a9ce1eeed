"""Tables of the pipeline: `kelpie pipeline run`. What needs Spark or Delta is imported when it is used."""

import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kelpie.api.places import FolderLike, PathLike, paths
from kelpie.evidence.logs.hints import NO_HINTS, Hints
from kelpie.model.kelpie_error import KelpieError
from kelpie.places import Place, PlaceRefused, credentials, place_of
from kelpie.places.place import for_tables, try_to_write

if TYPE_CHECKING:
    from kelpie.pipeline.summary import Summary

_SMALL_INPUT = 64_000_000
_LAYERS = ("bronze", "silver", "gold")


@contextmanager
def needs_pipeline() -> Iterator[None]:
    """Around imports of the pipeline. Raises KelpieError."""
    try:
        yield
    except ImportError as error:
        hint = f"Tables need Spark and Delta: pip install 'kelpie-kafka[pipeline]'. ({error})"
        raise KelpieError(hint) from None


def run_pipeline(
    evidence: PathLike | Iterable[PathLike],
    into: FolderLike,
    *,
    cluster: str | None = None,
    spark: Any = None,
    master: str | None = None,
    conf: Mapping[str, str] | None = None,
    hints: Hints = NO_HINTS,
    announce: Callable[[str], None] = lambda _: None,
) -> "Summary":
    """Takes files into Delta tables, each once, and makes all tables that follow.

    `evidence`: folders and files. `into`: the folder of the tables. `spark`: a session, which stays open;
    else one is started by `master` and `conf`, on this machine if they are left out. `announce` hears what
    begins. Raises KelpieError, and what Spark raises.
    """
    sources = [path.absolute() for path in paths(evidence)]
    folder = place_of(str(into)).absolute()
    check_sources(sources, folder)
    with needs_pipeline():
        from kelpie.pipeline.run import run  # noqa: PLC0415 - Spark takes a second to import.
        from kelpie.pipeline.spark.session import open_session  # noqa: PLC0415
        from kelpie.pipeline.storage.lake import Lake  # noqa: PLC0415
    prepare_tables(folder, conf or {})
    session = spark
    if session is None:
        announce("starting Spark")
        session = open_session(
            master, brief=is_small(sources), places=[folder], settings=dict(conf or {}), announce=announce
        )
    try:
        return run(session, Lake(folder), sources, cluster=cluster, hints=hints, announce=announce)
    finally:
        if spark is None:
            session.stop()


def prepare_tables(into: Place, settings: Mapping[str, str]) -> None:
    """Creates the folder if needed; checks that it is writable and holds only tables. Raises KelpieError.

    `settings`: those of Spark, which may have what a remote place asks for.
    """
    try:
        with needs_pipeline():
            for_tables(into)
            credentials.adopt(settings)
            into.mkdir(parents=True, exist_ok=True)
            if isinstance(into, Path):
                tempfile.TemporaryFile(dir=into).close()
            else:
                try_to_write(into)
        entries = sorted(entry.name for entry in into.iterdir())
    except PlaceRefused as error:
        raise KelpieError(str(error)) from None
    except (FileExistsError, NotADirectoryError):
        raise KelpieError(f"{into}: that is a file; tables go into a folder.") from None
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        raise KelpieError(f"{into}: tables cannot be written there: {why}.") from None
    foreign = [entry for entry in entries if entry not in _LAYERS and not entry.startswith(("_", "."))]
    if foreign and not any(entry in _LAYERS for entry in entries):
        more = f" and {len(foreign) - 1} more" if len(foreign) > 1 else ""
        raise KelpieError(
            f"{into}: it holds other things ({foreign[0]}{more}) and no tables. Name a new folder."
        )


def check_sources(sources: Sequence[Path], into: Place) -> None:
    """That there are files, and that the tables are not among them. Raises KelpieError."""
    missing = [str(path) for path in sources if not path.exists()]
    if missing:
        raise KelpieError(f"There is no {', '.join(missing)}.")
    inside = [path for path in sources if isinstance(into, Path) and (path == into or path in into.parents)]
    if inside:
        raise KelpieError(
            f"The tables ({into}) would be inside of what is read ({inside[0]}), and be read with it the "
            "next time. Name another folder for the tables."
        )
    if not any(path.is_file() or any(names for _, _, names in os.walk(path)) for path in sources):
        raise KelpieError(f"There is no file in {', '.join(map(str, sources))}.")


def is_small(sources: Sequence[Path]) -> bool:
    """Whether the input is so small that the JVM has no time to warm up."""
    size = 0
    for source in sources:
        for path in source.rglob("*") if source.is_dir() else [source]:
            size += path.stat().st_size if path.is_file() else 0
            if size > _SMALL_INPUT:
                return False
    return True
