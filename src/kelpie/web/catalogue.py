"""Collects the messages of pages for translators: `python -m kelpie.web.catalogue LANGUAGE…`.

Brings `locale/LANGUAGE.po` up to date: new messages without a translation, old ones taken out. Without a
language, it prints all messages.
"""

import sys
from io import BytesIO
from itertools import takewhile
from pathlib import Path

from babel.messages.catalog import Catalog
from babel.messages.extract import extract
from babel.messages.pofile import read_po, write_po

_FOLDER = Path(__file__).parent
_KEYWORDS = {"_": None, "N_": None, "gettext": None, "ngettext": (1, 2)}
_SETTINGS = {"trimmed": "true", "newstyle_gettext": "true", "silent": "false", "trim_blocks": "true"}
_COMMENT = "Translators:"
_HEAD = """msgid ""
msgstr ""
"Content-Type: text/plain; charset=utf-8\\n"
"""


def messages() -> Catalog:
    """All that pages say, with the files that say it."""
    catalogue = Catalog(project="kelpie", fuzzy=False)
    for path in sorted([*_FOLDER.rglob("*.py"), *_FOLDER.rglob("*.html")]):
        where = [(str(path.relative_to(_FOLDER)), 0)]
        method = "python" if path.suffix == ".py" else "jinja2"
        with path.open("rb") as file:
            for _, message, comments, _ in extract(method, file, _KEYWORDS, [_COMMENT], _SETTINGS):
                catalogue.add(message, locations=where, auto_comments=comments)
    return catalogue


def update(language: str) -> Path:
    name = language.replace("-", "_")
    return bring_up_to_date(_FOLDER / "locale" / f"{name}.po", messages(), name)


def bring_up_to_date(path: Path, found: Catalog, name: str) -> Path:
    """New messages come in without a translation, old ones go out; the comment on top of the file stays."""
    catalogue, comment = Catalog(locale=name, project="kelpie", fuzzy=False), ""
    if path.exists():
        text = path.read_bytes()
        lines = text.decode().splitlines(keepends=True)
        comment = "".join(takewhile(lambda line: line.startswith("#"), lines))
        catalogue = read_po(BytesIO(text), locale=name)
    catalogue.update(found, no_fuzzy_matching=True)
    catalogue.obsolete.clear()
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(comment.encode() + _text(catalogue))
    return path


def _text(catalogue: Catalog) -> bytes:
    written = BytesIO()
    write_po(written, catalogue, width=110, omit_header=True, include_lineno=False, sort_by_file=True)
    head = _HEAD
    if catalogue.locale is not None:
        head += f'"Language: {catalogue.locale}\\n"\n"Plural-Forms: {catalogue.plural_forms}\\n"\n'
    return head.encode() + b"\n" + written.getvalue()


if __name__ == "__main__":
    for each in sys.argv[1:]:
        sys.stdout.write(f"{update(each)}\n")
    if not sys.argv[1:]:
        sys.stdout.write(_text(messages()).decode())
