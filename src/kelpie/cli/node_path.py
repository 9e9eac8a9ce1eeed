"""Paths of nodes in ZooKeeper, as options take them."""

import argparse

from kelpie.attribution.addresses import KOP_ROOT


def node_path(text: str) -> str:
    """With a "/" before it and none behind. Raises ArgumentTypeError."""
    path = "/" + text.strip("/")
    if path == "/":
        raise argparse.ArgumentTypeError(f"{text!r} is no path of a node; KoP's default is {KOP_ROOT}")
    return path
