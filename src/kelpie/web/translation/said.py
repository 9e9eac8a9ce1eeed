"""Which modules make sentences that pages show, and what in them is no sentence."""

from collections.abc import Iterator
from pathlib import Path

from kelpie.errors import info
from kelpie.web.translation.extraction import templates

_ROOT = Path(__file__).parents[2]
DOCTOR, REPAIRS, LAB = "doctor", "repairs", "lab"
KINDS = (DOCTOR, REPAIRS, LAB)
"""Who speaks: each has a catalogue, and a folder of `locale/`. Pages of repairs and of the lab also say what
the doctor says, whose pages say nothing of theirs: the more templates, the more a text may be taken for.
"""
_OF_DOCTOR = (
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
    "client/other_servers.py",
    "client/tls.py",
    "client/zookeeper_survey.py",
    "client/admin/*.py",
    "client/survey/*.py",
    "evidence/folder.py",
    "evidence/unreadable.py",
)
_MODULES = {
    DOCTOR: _OF_DOCTOR,
    REPAIRS: ("repair/*.py", "client/admin/changes.py", "client/zookeeper.py", "web/repairs/workshop.py"),
    LAB: ("lab/brokers.py", "lab/faults.py", "lab/injection.py", "lab/matching.py", "web/lab_controls.py"),
}
_ON_NO_PAGE = {
    "doctor/rendering": "the terminal's reports, and JSON",
    "doctor/pages.py": "makes docs/rules",
    "doctor/rule_names.py": "errors of the command line",
    "doctor/checks.py": "commands",
    "cluster/commands.py": "commands",
    "repair/rendering.py": "the terminal's plans",
    "repair/change_states.py": "kelpie undo --list",
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
    "kelpie change 1": "the format of a file",
    "list[dict[str, Any]]": "a type",
    '{"version": 1, "partitions": [\n  {0}\n]}\n': "for Kafka's own tool",
    "kelpie undo -b {0} {1}": "a command",
    "echo {0} > elect.json": "a command",
    "kafka-preferred-replica-election.sh --zookeeper {0} --path-to-json-file elect.json": "a command",
    "zookeeper-shell.sh {0} delete /controller": "a command",
    "mappings check": "a command",
    "mappings repair": "a command",
    "The brokers do not count traffic by group: give the cluster a plan of attribution.": "asked by tests",
    "{0} struck {1} times within {2} s; {3} were waited for": "a test waited for it",
    "fault {0} ({1})": "the lab's log",
}
"""Texts of these modules that no page shows, with the reason."""
REFUSALS = (
    *(-1, 3, 5, 6, 7, 8, 9, 12, 13, 14, 15, 16, 17, 19, 20, 22, 24, 25, 27, 28, 29, 30, 31, 35, 38, 39),
    *(40, 41, 42, 44, 55, 58, 60, 68, 69, 80, 83, 84, 85, 86, 87, 88, 89, 100, 111, 113),
)
"""Kafka's errors with which brokers refuse what repairs ask of them: groups, offsets, elections, moves."""
_NO_CODE = 32_767
ALSO_SAID: dict[str, tuple[str, ...]] = {
    DOCTOR: (
        *("CRITICAL: {0}", "WARNING: {0}", "NOTICE: {0}"),
        *(
            "{0#} {a:critical finding|critical findings}",
            "{0#} {a:warning|warnings}",
            "{0#} {a:notice|notices}",
        ),
        *("{0#} h", "{0#} d", "{0#} h {1#} min", "{0#} d {1#} h"),
        *("the log begins at {0} and ends at {1}", "the log begins at {0} and is stable up to {1}"),
        "the log begins at {0}, is stable up to {1} and ends at {2}",
        *("none", "unknown", "nobody", "nothing", "committed", "ends", "ended", "connection refused"),
        *("group", "topic"),
        *("are", "has", "it", "waits"),
    ),
    REPAIRS: (
        *("Offsets", "Nothing.", "order", "{0} written.", "{0} deleted.", "{0} put back."),
        *("{0#} missing", "{0#} wrong", "{0#} ambiguous", "{0#} leaked", "{0#} unmappable"),
        *(info(code).meaning for code in (*REFUSALS, _NO_CODE)),
        *("copy of {0} on {1}: {2}", "to {0}"),
        *("{0} (certain: {1})", "{0} (likely: {1})", "{0} (dated: {1})"),
    ),
    LAB: ("anything",),
}
"""What the code puts together of words and names that it has in variables: no template shows it."""


def said(kind: str = DOCTOR) -> dict[str, str]:
    """Every template that may reach a page, with the module that says it; without those that the doctor says,
    too.
    """
    found: dict[str, str] = {}
    for path in _paths(kind):
        for text in templates(path):
            if (" " in text or (kind == REPAIRS and _is_heading(text))) and text not in NOT_SAID:
                found.setdefault(text, path.relative_to(_ROOT).as_posix())
    known = said() if kind != DOCTOR else {}
    found = {text: module for text, module in found.items() if text not in known}
    return found | dict.fromkeys(ALSO_SAID[kind], kind)


def unsaid() -> set[str]:
    """Those of NOT_SAID that the modules still have."""
    paths = [path for kind in KINDS for path in _paths(kind)]
    return {text for path in paths for text in templates(path) if text in NOT_SAID}


def _is_heading(text: str) -> bool:
    """Columns of a plan's tables are written in capital letters."""
    return text.isupper() and text.isalpha()


def _paths(kind: str) -> Iterator[Path]:
    for pattern in _MODULES[kind]:
        for path in sorted(_ROOT.glob(pattern)):
            name = path.relative_to(_ROOT).as_posix()
            of_another = kind == DOCTOR and name in _MODULES[REPAIRS]
            if not of_another and not name.startswith(tuple(_ON_NO_PAGE)):
                yield path
