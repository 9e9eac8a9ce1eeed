"""Lines of the audit log as people read them. The file and its twin in JSON keep their names and values."""

import json
from collections.abc import Mapping
from typing import Any

from markupsafe import Markup, escape

from kelpie.model.quoting import harmless
from kelpie.web.language import N_, gettext
from kelpie.web.translation.said import REPAIRS
from kelpie.web.words import sentence

_IN_COLUMNS = ("at", "user", "address", "via", "event", "run")
_EVENTS = {
    "login": N_("logged in"),
    "logout": N_("logged out"),
    "login refused": N_("login refused"),
    "apply": N_("repair begun"),
    "applied": N_("repair ended"),
}
_NAMES = {
    "cluster": N_("cluster"),
    "repair": N_("repair"),
    "subject": N_("of"),
    "asked": N_("asked for"),
    "plan": N_("plan"),
    "planned_by": N_("planned by"),
    "title": N_("title"),
    "outcome": N_("outcome"),
    "reports": N_("reports"),
    "change": N_("change"),
    "failure": N_("failure"),
    "left_out_before": N_("left out before"),
}
_SENTENCES = ("title", "failure")


def event_of(line: Mapping[str, Any]) -> str:
    event = str(line.get("event", "–"))
    return gettext(_EVENTS[event]) if event in _EVENTS else harmless(event)


def details_of(line: Mapping[str, Any], outcomes: Mapping[str, str]) -> list[tuple[str, Markup]]:
    """What has no column, by name. `outcomes`: words for what became of a repair."""
    return [
        (gettext(_NAMES[name]) if name in _NAMES else harmless(name), _shown(name, value, outcomes))
        for name, value in line.items()
        if name not in _IN_COLUMNS and value not in (None, [], "")
    ]


def _shown(name: str, value: object, outcomes: Mapping[str, str]) -> Markup:
    if name in _SENTENCES and isinstance(value, str):
        return sentence(value, REPAIRS)
    if name == "reports" and isinstance(value, list):
        return Markup(" ").join(sentence(str(each), REPAIRS) for each in value)
    if name == "outcome":
        return escape(outcomes.get(str(value), harmless(str(value))))
    return escape(harmless(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)))
