"""The pages of the rules, out of their docstrings: `python -m kelpie.doctor.pages docs/rules`."""

import re
import sys
from itertools import groupby
from pathlib import Path

from kelpie.doctor.rule import Rule
from kelpie.doctor.rules import rules

_TITLES = "What it sees|Why it matters|How it decides|What it needs|What to do|When it is wrong"
_PARAGRAPH = re.compile(rf"^({_TITLES}): (.)", re.M)
_GOES_ON = re.compile(rf"^({_TITLES}),", re.M)
_REPRODUCE = re.compile(r"^Reproduce: (.*)$", re.M)
_OTHER_RULE = re.compile(r"\bKLP\d{3}\b")
_FAMILIES = {
    "1": "Coordinators and the offsets topic",
    "2": "Membership and rebalances",
    "3": "Positions and offsets",
    "4": "Traffic by group",
    "5": "Groups in ZooKeeper",
    "6": "Clients",
}


def pages() -> dict[str, str]:
    """File name to text: one page for each rule, and README.md that lists them."""
    rule_pages = {f"{rule.code}.md": _page(rule) for rule in rules().values()}
    return {"README.md": _index(), **rule_pages}


def write(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    texts = pages()
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    for stale in folder.glob("KLP*.md"):
        if stale.name not in texts:
            stale.unlink()


def _page(rule: Rule) -> str:
    title, _, body = rule.page.partition("\n")
    body = _PARAGRAPH.sub(lambda match: f"**{match[1]}.** {match[2].upper()}", body)
    body = _GOES_ON.sub(r"**\1**,", body)
    body = _REPRODUCE.sub(r"**Reproduce.** `\1`", body)
    body = _OTHER_RULE.sub(lambda match: _link(match[0], rule.code), body)
    return f"# {title}\n{_with_lists_apart(body)}\n"


def _link(code: str, page: str) -> str:
    """The code of a rule; as a link, if it has a page, and that is another one."""
    return f"[{code}]({code}.md)" if code in rules() and code != page else code


def _with_lists_apart(text: str) -> str:
    """A blank line before and after each list: not every reader of Markdown sees a list without."""
    lines: list[str] = []
    in_list = False
    for line in text.split("\n"):
        begins = line.startswith("- ")
        goes_on = in_list and (begins or line.startswith(" "))
        if line and lines and lines[-1] and (begins or in_list) and not goes_on:
            lines.append("")
        in_list = begins or goes_on
        lines.append(line)
    return "\n".join(lines)


def _index() -> str:
    lines = [
        "# What the doctor can find",
        "",
        "Made from the rules' docstrings by `python -m kelpie.doctor.pages docs/rules`; `kelpie explain "
        "CODE` prints the same.",
    ]
    for family, members in groupby(rules().values(), key=lambda rule: rule.code[3]):
        title = _FAMILIES.get(family, "Others")
        lines += ["", f"## {title}", "", "| code | name | sees |", "|---|---|---|"]
        lines += [f"| [{rule.code}]({rule.code}.md) | {rule.name} | {_sees(rule)} |" for rule in members]
    return "\n".join(lines) + "\n"


def _sees(rule: Rule) -> str:
    """The first paragraph, on one line."""
    text = rule.page.partition("What it sees: ")[2].partition("\n\n")[0]
    return " ".join(text.split()).rstrip(".").replace("|", "\\|")


if __name__ == "__main__":
    write(Path(sys.argv[1] if len(sys.argv) > 1 else "docs/rules"))
