"""Runs the benchmarks: `python -m bench [NAME…]`. Writes docs/benchmarks.md, prints the ratios last."""

import importlib
import platform
import re
import sys
from pathlib import Path

from bench.measure import Report

BENCHMARKS = [
    "codec",
    "lab",
    "survey",
    "doctor",
    "web",
    "pipeline",
    "small",
    "rounds",
    "fleet",
    "attribution",
]
PAGE = Path(__file__).parent.parent / "docs" / "benchmarks.md"
HEAD = """# Benchmarks

Written by `make bench`. Each compares Kelpie with a peer in one run on one machine; machines differ and are
noisy, so read the ratios: above 1, Kelpie is ahead.
"""


def main(wanted: list[str]) -> int:
    unknown = sorted(set(wanted) - set(BENCHMARKS))
    if unknown:
        print(f"no benchmark {', '.join(unknown)}; there are: {', '.join(BENCHMARKS)}", file=sys.stderr)
        return 2
    reports = {name: importlib.import_module(f"bench.{name}").run() for name in wanted or BENCHMARKS}
    write_page({name: section(name, report) for name, report in reports.items()})
    for report in reports.values():
        print(report.title)
        print(table(report))
    for report in reports.values():
        for ratio in report.ratios:
            print(ratio)
    return 0


def table(report: Report) -> str:
    lines = [list(report.header), ["---"] * len(report.header), *map(list, report.rows)]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def section(name: str, report: Report) -> str:
    python = f"CPython {platform.python_version()} on {platform.machine()}"
    ratios = "\n".join(map(str, report.ratios))
    return (
        f"<!-- {name} -->\n## {report.title}\n\n{report.about} {python}.\n\n{table(report)}\n\n"
        f"```\n{ratios}\n```\n"
    )


def write_page(fresh: dict[str, str]) -> None:
    """Replaces the sections that were measured anew and keeps the others."""
    kept = PAGE.read_text() if PAGE.exists() else ""
    sections = {part.split(" -->")[0]: f"<!-- {part}" for part in re.split(r"^<!-- ", kept, flags=re.M)[1:]}
    sections.update(fresh)
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(
        HEAD + "".join(f"\n{sections[name].rstrip()}\n" for name in BENCHMARKS if name in sections)
    )


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
