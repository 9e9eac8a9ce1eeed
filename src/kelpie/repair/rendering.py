"""Plans and results as text of a given width. Lines to paste stay such."""

from collections.abc import Iterable, Sequence

from kelpie.cluster import commands
from kelpie.model.cells import cells, fill, padded
from kelpie.model.columns import in_lines, narrowed
from kelpie.model.quoting import words_of
from kelpie.repair.applying import RepairResult
from kelpie.repair.plan import ManualStep, Plan, PlanTable

WIDTH = 80
"""Where no terminal says otherwise."""
_HOW_TO_GO_ON = "To go on: mend what is said above and run the same command again; what is done is kept."
_AGAIN = "To apply the plan above, run the command again."
_MOST_ROWS = 40
"""More rows of a table do not help a person; programs get them all with --json."""


def render(plan: Plan, width: int = WIDTH) -> str:
    blocks = [
        _wrapped(width, plan.title),
        _block("What was found", _sentences(width, plan.seen)),
        *(_table(width, table) for table in plan.tables),
        *(f"{document.title}\n{document.text.rstrip()}" for document in plan.documents),
        _block("Plan", _steps(width, plan)),
        _block("What to do by hand", [_manual_step(width, step, "  ") for step in plan.instead]),
        _block("Mind", _sentences(width, plan.warnings)),
        _block("This cannot be done now", _sentences(width, plan.obstacles)),
        _block("Afterwards", [_manual_step(width, step, "  ") for step in plan.afterwards]),
    ]
    return "\n\n".join(filter(None, blocks))


def render_end(plan: Plan) -> str:
    """The last line of a plan that was only printed."""
    if plan.obstacles:
        return "Nothing was changed."
    if not plan.steps:
        return "Nothing was changed: there is nothing left for Kelpie to do."
    return (
        f"This is plan {plan.id}. With --apply, it is done if it is still the same then.\n"
        "Nothing was changed. To do it, run the same command with --apply."
    )


def render_refusal(reason: str, plan: Plan, *, by_id: bool, width: int = WIDTH) -> str:
    """Instead of applying a plan that is not the one that was shown, or that was asked for by its id."""
    how = f"To apply the plan above: --apply --plan {plan.id}" if by_id else _AGAIN
    return "\n".join([_wrapped(width, reason), f"Nothing was changed. {how}"])


def render_report(number: int, steps: int, report: str, width: int = WIDTH) -> str:
    return _wrapped(width, report, f"{number} of {steps}  ")


def render_failure(result: RepairResult, width: int = WIDTH) -> str:
    number = len(result.reports) + 1
    steps = result.plan.steps
    lines = [
        _wrapped(width, f"Step {number} of {len(steps)} broke: {steps[number - 1].does}.", ""),
        _wrapped(width, result.failure or "", "  "),
        "",
    ]
    lines.append("Done so far:" if result.done else "Nothing was changed.")
    lines += [_wrapped(width, step.does + ".", f"  {at}. ") for at, step in enumerate(result.done, start=1)]
    lines += ["", _wrapped(width, _HOW_TO_GO_ON)]
    if result.undo_steps:
        lines.append("To go back:")
        lines += [_manual_step(width, step, "  ") for step in result.undo_steps]
    return "\n".join(lines)


def _block(title: str, lines: Sequence[str]) -> str:
    return "\n".join([title, *lines]) if lines else ""


def _sentences(width: int, sentences: Iterable[str]) -> list[str]:
    return [_wrapped(width, sentence, "  - ") for sentence in sentences]


def _steps(width: int, plan: Plan) -> list[str]:
    lines = []
    for number, step in enumerate(plan.steps, start=1):
        lines.append(_wrapped(width, step.does + ".", f"  {number}. "))
        lines.append(_wrapped(width, f"Changes: {step.changes}", "     "))
        lines.append(_manual_step(width, ManualStep(f"Undo: {step.undo.text}", step.undo.lines), "     "))
    return lines


def _manual_step(width: int, step: ManualStep, indent: str) -> str:
    start = indent + "    "
    return "\n".join(
        [_wrapped(width, step.text, indent), *(_pasteable(width, line, start) for line in step.lines)]
    )


def _pasteable(width: int, line: str, indent: str) -> str:
    """A command that is too long goes on behind a backslash, as shells take it; other lines stay whole."""
    if len(indent) + len(line) <= width or not line.startswith(commands.BEGINNINGS):
        return indent + line
    lines = [indent.rstrip("\n")]
    for word in words_of(line):
        if len(lines[-1]) + len(word) + 2 > width and lines[-1].strip():
            lines[-1] += "\\"
            lines.append(indent + "    ")
        lines[-1] += word + " "
    return "\n".join(lines).rstrip()


def _table(width: int, table: PlanTable) -> str:
    shown = table.rows[:_MOST_ROWS]
    rows = [[printable(cell) for cell in row] for row in (table.columns, *shown)]
    last = max(cells(row[-1]) for row in rows)
    numbers = [bool(shown) and all(_is_number(row[at]) for row in shown) for at in range(len(table.columns))]
    reserved = last if numbers[-1] else cells(table.columns[-1])
    widths = narrowed([row[:-1] for row in rows], width - 2 * len(table.columns) - reserved)
    lines = [table.title]
    for row in rows:
        lines += _row(width, row, [*widths, last], numbers)
    if len(table.rows) > len(shown):
        lines.append(f"  … and {len(table.rows) - len(shown)} more; --json has them all")
    lines += [_wrapped(width, note, "  ", "     ") for note in table.notes]
    return "\n".join(lines)


def _row(width: int, row: Sequence[str], widths: Sequence[int], numbers: Sequence[bool]) -> list[str]:
    """One line, if long names need not be folded; what does not fit of its last column goes on below it."""
    first, *others = in_lines(row[:-1], widths[:-1]) or [()]
    start = _columns(first, widths, numbers)
    below = [_columns(line, widths, numbers).rstrip() for line in others]
    rest = row[-1].rjust(widths[-1]) if numbers[-1] else row[-1]
    if cells(start) + cells(rest) <= width or numbers[-1]:
        return [(start + rest).rstrip(), *below]
    if below or cells(start) > width // 2:
        return [start.rstrip(), *below, _wrapped(width, rest, " " * 6)]
    return [_wrapped(width, rest, start).rstrip()]


def _columns(row: Sequence[str], widths: Sequence[int], numbers: Sequence[bool]) -> str:
    """All but the last."""
    columns = [
        text.rjust(each) if number else padded(text, each)
        for text, each, number in zip(row, widths, numbers, strict=False)
    ]
    return "  " + "".join(f"{column}  " for column in columns)


def printable(text: str) -> str:
    """Names come from anywhere; what would drive the terminal is shown instead."""
    return "".join(sign if sign.isprintable() else ascii(sign)[1:-1] for sign in text)


def _is_number(text: str) -> bool:
    return text in ("", "-") or text.lstrip("+-").replace(",", "").isdigit()


def _wrapped(width: int, text: str, indent: str = "", then: str | None = None) -> str:
    return fill(printable(text), width, indent, " " * cells(indent) if then is None else then)
