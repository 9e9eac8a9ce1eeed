"""How templates write numbers, times, sentences and addresses."""

from collections.abc import Callable, Sequence
from contextvars import ContextVar
from functools import lru_cache
from typing import Any
from urllib.parse import quote, quote_plus

from markupsafe import Markup, escape

from kelpie.model.quoting import harmless
from kelpie.model.time import Instant, iso_time
from kelpie.model.words import duration, moment
from kelpie.web.language import ENGLISH, N_, gettext, tag
from kelpie.web.translation import Piece, pieces_of
from kelpie.web.translation.said import DOCTOR

UNKNOWN = "–"
_SHOWN_AT: ContextVar[str | None] = ContextVar("the time that a page shows")
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
        # Translators: why a member left a group, or why a group rebalanced.
        *(N_("left"), N_("expired"), N_("fenced"), N_("poll-interval"), N_("joined"), N_("subscription")),
        *(N_("static"), N_("rejoined")),
        # Translators: how traffic is known to be of a group.
        *(N_("counted"), N_("exact"), N_("apportioned"), N_("derived")),
        # Translators: what could not be asked.
        *(N_("broker"), N_("brokers"), N_("file"), N_("files"), N_("group"), N_("groups"), N_("history")),
        *(N_("partition"), N_("partitions"), N_("settings"), N_("sizes"), N_("topic"), N_("topics")),
        N_("zookeeper"),
        # Translators: the health of a partition.
        *(N_("no leader"), N_("leader dead"), N_("at risk"), N_("likely safe"), N_("safe")),
    )
}


def number(value: float | None) -> str:
    return UNKNOWN if value is None else f"{value:,.0f}"


def rate(value: float | None) -> str:
    """With the digits that a small number needs."""
    return UNKNOWN if value is None else f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


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
    text = f'<time datetime="{machine_time(at)}">{time_of(at)}</time>'
    return Markup(text)  # noqa: S704 - both are written here, of a number.


def trend(change: float | None) -> str:
    """Records a minute, with a sign."""
    if change is None:
        return UNKNOWN
    return "±0" if abs(change) < 0.5 else f"{change:+,.0f}"


def sentence(text: str, kind: str = DOCTOR) -> Markup:
    """What the doctor says, or repairs or the lab (`said.KINDS`), in the language of the page; what has no
    translation is marked as English.
    """
    if tag() == ENGLISH:
        return escape(harmless(text))
    return Markup("").join(map(_piece, pieces_of(text, tag(), kind)))


def _piece(piece: Piece) -> Markup:
    if piece.is_english:
        return Markup('<span lang="en">{}</span>').format(harmless(piece.text))
    return escape(harmless(piece.text))


def names(some: Sequence[str], most: int = 4) -> str:
    """The first few, and how many more there are."""
    if not some:
        return UNKNOWN
    more = len(some) - most
    first = ", ".join(map(harmless, some[:most]))
    return first if more <= 0 else gettext("%(names)s and %(count)s more") % {"names": first, "count": more}


def word(text: str) -> str:
    """A word of a fixed set, such as how bad a finding is."""
    return gettext(text) if text in _WORDS else text


def translated(message: str, /, **values: object) -> Markup:
    """`_("…")` of templates: what is filled in is escaped. Jinja's own does it with three times the calls."""
    text = Markup(gettext(message))  # noqa: S704 - of templates and catalogues, which are ours.
    return text % values if values or "%" in text else text


def group_address(group: str, cluster: str) -> str:
    return cluster_address(cluster, "group", name=group)


def cluster_address(cluster: str, page: str = "overview", **query: str) -> str:
    """Links of a page that shows the past lead to pages of the same time."""
    at = _SHOWN_AT.get(None)
    words = "&".join([f"{name}={quote_plus(text)}" for name, text in query.items()])
    if at is not None:
        words += f"&at={quote_plus(at)}" if words else f"at={quote_plus(at)}"
    return f"/clusters/{_in_path(cluster)}/{page}" + (f"?{words}" if words else "")


@lru_cache(maxsize=1_000)
def _in_path(name: str) -> str:
    return quote(name, safe="")


def show(at: str | None) -> None:
    """Says of which time the page is that is written now; None: of the last look."""
    _SHOWN_AT.set(at)


FILTERS: dict[str, Callable[..., Any]] = {
    "number": number,
    "rate": rate,
    "span": span,
    "moment": time_of,
    "time_element": time_element,
    "trend": trend,
    "harmless": harmless,
    "sentence": sentence,
    "word": word,
    "names": names,
    "group_address": group_address,
    "cluster_address": cluster_address,
}
