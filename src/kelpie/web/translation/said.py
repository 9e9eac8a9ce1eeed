"""Which modules make sentences that pages show, and what in them is no sentence."""

from collections.abc import Iterator
from pathlib import Path

from kelpie.web.translation.extraction import templates

_ROOT = Path(__file__).parents[2]
_MODULES = (
    "doctor/**/*.py",
    "cluster/*.py",
    "model/words.py",
    "observations/earlier.py",
    "observations/presence.py",
    "client/client_errors.py",
    "client/connection.py",
    "client/dialling.py",
    "client/history.py",
    "client/nodes.py",
    "client/opening.py",
    "client/tls.py",
    "client/zookeeper_survey.py",
    "client/admin/*.py",
    "client/survey/*.py",
    "evidence/folder.py",
    "evidence/unreadable.py",
)
_ON_NO_PAGE = {
    "doctor/rendering": "the terminal's reports, and JSON",
    "doctor/pages.py": "makes docs/rules",
    "doctor/rule_names.py": "errors of the command line",
    "doctor/checks.py": "commands",
    "cluster/commands.py": "commands",
    "client/admin/changes.py": "results of repairs",
}
NOT_SAID = {
    "openssl s_client -connect {0} </dev/null | openssl x509 -noout": "a command",
    "getent hosts {0}": "a command",
    "nc -vz {0} {1}": "a command",
    "listed by broker ": "compared, not shown",
    "topic ": "cut off names, not shown",
    "consumer ": "compared, not shown",
    "kicked out": "searched in logs",
    "not part of an active group": "searched in logs",
    "already rebalanced and assigned": "searched in logs",
    "probing rebalance": "searched in logs",
    "followup rebalance": "searched in logs",
    "follow-up rebalance": "searched in logs",
    "The trusted certificates cannot be read as PEM: {0}.": "ends the program at its start",
    "The client's own certificate and key cannot be used: {0}. Is ssl.key.password right, and do key and "
    "certificate belong together?": "ends the program at its start",
}
"""Texts of these modules that no page shows, with the reason."""
ALSO_SAID = (
    *("CRITICAL: {0}", "WARNING: {0}", "NOTICE: {0}"),
    *("{0#} {a:critical finding|critical findings}", "{0#} {a:warning|warnings}", "{0#} {a:notice|notices}"),
    *("{0#} h", "{0#} d", "{0#} h {1#} min", "{0#} d {1#} h"),
    *("the log begins at {0} and ends at {1}", "the log begins at {0} and is stable up to {1}"),
    "the log begins at {0}, is stable up to {1} and ends at {2}",
    *("none", "unknown", "nobody", "nothing", "committed", "ends", "ended", "connection refused"),
    *("group", "topic"),
    *("are", "has", "it", "waits"),
)
"""What the code puts together of words and names that it has in variables: no template shows it."""


def said() -> dict[str, str]:
    """Every template that may reach a page, with the module that says it."""
    found: dict[str, str] = {}
    for path in _paths():
        for text in templates(path):
            if " " in text and text not in NOT_SAID:
                found.setdefault(text, path.relative_to(_ROOT).as_posix())
    return found | dict.fromkeys(ALSO_SAID, "doctor")


def unsaid() -> set[str]:
    """Those of NOT_SAID that the modules still have."""
    return {text for path in _paths() for text in templates(path) if text in NOT_SAID}


def _paths() -> Iterator[Path]:
    for pattern in _MODULES:
        for path in sorted(_ROOT.glob(pattern)):
            if not path.relative_to(_ROOT).as_posix().startswith(tuple(_ON_NO_PAGE)):
                yield path
