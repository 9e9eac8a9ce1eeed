"""Options that name a place: a path, or a URL of a file system that several machines reach."""

import argparse

from kelpie.places import Place, PlaceRefused, place_of


def place(text: str) -> Place:
    try:
        return place_of(text)
    except PlaceRefused as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def add_into_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--into",
        required=True,
        type=place,
        metavar="TABLES",
        help="folder of the tables: a path, or hdfs://HOST:PORT/…, s3://BUCKET/…",
    )
