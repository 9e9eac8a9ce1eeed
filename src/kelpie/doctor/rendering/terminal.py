"""A diagnosis for a person at a terminal: on one screen, or with all evidence."""

from kelpie.doctor.diagnosis import Diagnosis
from kelpie.doctor.rendering import brief, full
from kelpie.doctor.rendering.page import LARGEST_WIDTH, LEAST_WIDTH, WIDTH, Page

__all__ = ["WIDTH", "render"]


def render(diagnosis: Diagnosis, *, colour: bool = False, width: int = WIDTH, is_full: bool = False) -> str:
    page = Page(max(LEAST_WIDTH, min(width, LARGEST_WIDTH)), colour)
    lines = full.lines(diagnosis, page) if is_full else brief.lines(diagnosis, page)
    return "\n".join(lines) + "\n"
