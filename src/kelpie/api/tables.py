"""Tables of the pipeline: `kelpie pipeline run`. What needs Spark or Delta is imported when it is used."""

import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kelpie.api.places import FolderLike, folders_of
from kelpie.evidence.logs.hints import NO_HINTS, Hints
from kelpie.model.kelpie_error import KelpieError
from kelpie.pipeline.retention.keep import LAYERS, Keep
from kelpie.places import Place, PlaceRefused, credentials, place_of
from kelpie.places.place import files_below, for_tables, try_to_write

if TYPE_CHECKING:
    from kelpie.pipeline.summary import Summary

_SMALL_INPUT = 64_000_000


@contextmanager
def needs_pipeline() -> Iterator[None]:
    """Around imports of the pipeline. Raises KelpieError."""
    try:
        yield
    except ImportError as error:
        hint = f"Tables need Spark and Delta: pip install 'kelpie-kafka[pipeline]'. ({error})"
        raise KelpieError(hint) from None


def run_pipeline(
    evidence: FolderLike | Iterable[FolderLike],
    into: FolderLike,
    *,
    cluster: str | None = None,
    spark: Any = None,
    master: str | None = None,
    conf: Mapping[str, str] | None = None,
    hints: Hints = NO_HINTS,
    keep: Mapping[str, timedelta] | None = None,
    announce: Callable[[str], None] = lambda _: None,
) -> "Summary":
    """Takes files into Delta tables, each once, and makes all tables that follow.

    `evidence`: folders and files, `into`: the folder of the tables; paths or URLs. `spark`: a session, which
    stays open; else one is started by `master` and `conf`, on this machine if they are left out. `keep`: for
    how long rows stay, by layer (bronze, silver, gold); a layer that is not named keeps all. `announce` hears
    what begins. Raises KelpieError, and what Spark raises.
    """
    unknown = sorted(set(keep or ()) - set(LAYERS))
    if unknown:
        raise KelpieError(f"keep: there is no layer {unknown[0]!r}. There are {', '.join(LAYERS)}.")
    credentials.adopt(conf or {})
    with needs_pipeline():
        sources = [place.absolute() for place in folders_of(evidence)]
    folder = place_of(str(into)).absolute()
    check_sources(sources, folder, conf or {})
    with needs_pipeline():
        from kelpie.pipeline.run import run  # noqa: PLC0415 - Spark takes a second to import.
        from kelpie.pipeline.spark.session import open_session  # noqa: PLC0415
        from kelpie.pipeline.storage.lake import Lake  # noqa: PLC0415
    prepare_tables(folder, conf or {})
    session = spark
    if session is None:
        announce("starting Spark")
        session = open_session(
            master,
            brief=is_small(sources),
            places=[folder, *sources],
            settings=dict(conf or {}),
            announce=announce,
        )
    try:
        return run(
            session,
            Lake(folder),
            sources,
            cluster=cluster,
            hints=hints,
            announce=announce,
            keep=Keep(keep or {}),
        )
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
    foreign = [entry for entry in entries if entry not in LAYERS and not entry.startswith(("_", "."))]
    if foreign and not any(entry in LAYERS for entry in entries):
        more = f" and {len(foreign) - 1} more" if len(foreign) > 1 else ""
        raise KelpieError(
            f"{into}: it holds other things ({foreign[0]}{more}) and no tables. Name a new folder."
        )


def check_sources(sources: Sequence[Place], into: Place, settings: Mapping[str, str]) -> None:
    """That there are files, and that the tables are not among them. Raises KelpieError.

    `settings`: those of Spark, which may have what a remote place asks for.
    """
    try:
        with needs_pipeline():
            credentials.adopt(settings)
            missing = [str(place) for place in sources if not place.exists()]
            is_empty = not missing and not any(map(_has_file, sources))
    except OSError as error:
        raise KelpieError(f"What is to be read cannot be reached: {error.strerror or error}.") from None
    if missing:
        raise KelpieError(f"There is no {', '.join(missing)}.")
    inside = [place for place in sources if into.parts[: len(place.parts)] == place.parts]
    if inside:
        raise KelpieError(
            f"The tables ({into}) would be inside of what is read ({inside[0]}), and be read with it the "
            "next time. Name another folder for the tables."
        )
    if is_empty:
        raise KelpieError(f"There is no file in {', '.join(map(str, sources))}.")


def _has_file(place: Place) -> bool:
    return place.is_file() or next(files_below(place), None) is not None


def is_small(sources: Sequence[Place]) -> bool:
    """Whether the input is so small that the JVM has no time to warm up."""
    size = 0
    for source in sources:
        for length in _sizes(source):
            size += length
            if size > _SMALL_INPUT:
                return False
    return True


def _sizes(source: Place) -> Iterator[int]:
    if source.is_file():
        yield source.stat().st_size
    elif isinstance(source, Path):
        yield from (path.stat().st_size for path in source.rglob("*") if path.is_file())
    else:
        yield from (entry.st_size for _, entry in source.files())
