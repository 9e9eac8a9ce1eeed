"""What a run of the pipeline did, on a terminal."""

from typing import TYPE_CHECKING

from kelpie.cli.terminal import text_width
from kelpie.model.cells import wrap
from kelpie.model.quoting import harmless
from kelpie.places import Place

if TYPE_CHECKING:
    from kelpie.pipeline.summary import Summary

_MOST_FILES = 20
_TIED = "\xa0"
"""A space at which lines are not wrapped."""


def render(summary: "Summary", into: Place) -> str:
    """As wide as the terminal, unless a name is longer."""
    lines = [
        f"Cluster {summary.cluster}: {summary.files:,} files, {summary.new_files:,} new "
        f"({summary.bytes / 1_000_000:,.1f} MB)"
    ]
    kinds = ", ".join(f"{count:,} {kind}" for kind, count in sorted(summary.by_kind.items()))
    if kinds:
        lines += _wrapped("  recognised   ", kinds)
    quarantined = summary.written.get("quarantine", 0)
    lines.append(f"  rows in      {sum(summary.written.values()) - quarantined:,}")
    lines.append(f"  quarantined  {quarantined:,}")
    if summary.unusable:
        count = len(summary.unusable)
        lines.append(f"Of no use, or not wholly: {count:,} {'file' if count == 1 else 'files'}")
        for name, reason in summary.unusable[:_MOST_FILES]:
            lines += _wrapped("  ", f"{harmless(name)}: {harmless(reason)}", "    ")
        if len(summary.unusable) > _MOST_FILES:
            lines.append(f"  … and {len(summary.unusable) - _MOST_FILES:,} more, in the table quarantine")
    for note in summary.notes:
        lines += _wrapped("", harmless(note))
    if summary.tables:
        lines.append("Rows by table")
    width = max(map(len, summary.tables), default=0)
    for name, rows in summary.tables.items():
        new = summary.written.get(name)
        lines.append(f"  {name:<{width}} {rows:>12,}" + (f"  (+{new:,})" if new else ""))
    worst = ", ".join(f"{count:,} {word}" for word, count in sorted(summary.findings.items()))
    lines.append(f"Findings: {worst or 'none'}")
    if worst:
        lines.append(f"  kelpie doctor --tables {into}")
    spent = ", ".join(f"{stage} {seconds:.1f}{_TIED}s" for stage, seconds in summary.seconds.items())
    lines += _wrapped("Time: ", f"{sum(summary.seconds.values()):.1f} s: {spent}")
    return "\n".join(lines)


def _wrapped(begin: str, text: str, further: str | None = None) -> list[str]:
    wrapped = wrap(text, text_width(), begin, " " * len(begin) if further is None else further)
    return [line.replace(_TIED, " ") for line in wrapped]
