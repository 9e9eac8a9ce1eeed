"""How templates write numbers, times, sentences and addresses."""

from collections.abc import Callable
from typing import Any
from urllib.parse import quote, urlencode

from markupsafe import Markup, escape

from kelpie.model.quoting import harmless
from kelpie.model.time import Instant, iso_time
from kelpie.model.words import duration, moment
from kelpie.web.language import ENGLISH, N_, gettext, tag

UNKNOWN = "–"
_UNITS = {unit: unit for unit in (N_("ms"), N_("s"), N_("min"), N_("h"), N_("d"))}
_WORDS = {
    word: word
    for word in (
        # Translators: how bad a finding is; also the word for a group without one.
        *(N_("critical"), N_("warning"), N_("notice"), N_("ok"), N_("unknown")),
        # Translators: a broker.
        *(N_("alive"), N_("dead")),
        # Translators: a step on a group's way to its next record.
        *(N_("passed"), N_("failed")),
        # Translators: the health of a partition.
        *(N_("no leader"), N_("leader dead"), N_("at risk"), N_("likely safe"), N_("safe")),
    )
}


def number(value: float | None) -> str:
    return UNKNOWN if value is None else f"{value:,.0f}"


def span(ms: float | None) -> str:
    if ms is None:
        return UNKNOWN
    return " ".join(gettext(word) if word in _UNITS else word for word in duration(ms).split(" "))


def time_of(at: Instant | None) -> str:
    return UNKNOWN if at is None else moment(at)


def machine_time(at: Instant) -> str:
    """For the attribute `datetime`."""
    return iso_time(at)


def time_element(at: Instant) -> Markup:
    return Markup('<time datetime="{}">{}</time>').format(machine_time(at), time_of(at))


def trend(change: float | None) -> str:
    """Records a minute, with a sign."""
    if change is None:
        return UNKNOWN
    return "±0" if abs(change) < 0.5 else f"{change:+,.0f}"


def sentence(text: str) -> Markup:
    """What the doctor says, marked as English where the page is not."""
    if tag() == ENGLISH:
        return escape(harmless(text))
    return Markup('<span lang="en">{}</span>').format(harmless(text))


def word(text: str) -> str:
    """A word of a fixed set, such as how bad a finding is."""
    return gettext(text) if text in _WORDS else text


def group_address(group: str, cluster: str) -> str:
    return f"/clusters/{quote(cluster, safe='')}/group?{urlencode({'name': group})}"


def cluster_address(cluster: str, page: str = "overview") -> str:
    return f"/clusters/{quote(cluster, safe='')}/{page}"


FILTERS: dict[str, Callable[..., Any]] = {
    "number": number,
    "span": span,
    "moment": time_of,
    "time_element": time_element,
    "trend": trend,
    "harmless": harmless,
    "sentence": sentence,
    "word": word,
    "group_address": group_address,
    "cluster_address": cluster_address,
}
