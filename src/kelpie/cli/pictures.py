"""The option --picture of commands that draw what they counted."""

import argparse
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from kelpie.cli.command import CommandError, option

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_SUFFIXES = (".svg", ".png")


def add_picture_option(parser: argparse.ArgumentParser) -> None:
    option(
        parser,
        "--picture FILE",
        "also draw it; SVG or PNG, by the suffix of FILE; can be repeated",
        action="append",
        default=[],
        type=Path,
    )


def check_pictures(paths: Sequence[Path]) -> None:
    """Before the runs, so that nobody waits for a picture that cannot be drawn. Raises CommandError."""
    for path in paths:
        if path.suffix.lower() not in _SUFFIXES:
            raise CommandError(
                f"--picture {path}: pictures are SVG or PNG. Name a file that ends in .svg or .png."
            )
        if not path.absolute().parent.is_dir():
            raise CommandError(f"--picture {path}: there is no folder {path.parent}.")
    if paths and find_spec("matplotlib") is None:
        raise CommandError(
            "Pictures need the library matplotlib, which is not installed: pip install 'kelpie-kafka[plots]'."
        )


def write_pictures(figure: "Figure", paths: Sequence[Path]) -> None:
    from kelpie.plots.picture import write_picture  # noqa: PLC0415 - matplotlib loads slowly, and may not be there.

    for path in paths:
        try:
            write_picture(figure, path)
        except OSError as error:
            raise CommandError(f"{path} cannot be written: {error.strerror}.") from None
