"""Plans as data and text, and how they are carried out."""

import asyncio
import json
import shlex

import pytest

from kelpie.client.client_errors import TimedOut
from kelpie.documents.plan import result_document
from kelpie.repair.applying import Action, Repair, RepairResult, StepFailed, apply
from kelpie.repair.plan import NOTHING_CHANGES, Document, ManualStep, Plan, PlanTable, Step
from kelpie.repair.rendering import WIDTH, render, render_end, render_failure, render_report

LONG = (
    "kelpie reset -b kafka-1.example.org:9092,kafka-2.example.org:9092 'a group' --from-file "
    "/var/lib/kelpie/undo/a_group-20261116T021803Z.csv --apply"
)
PLAN = Plan(
    "reset",
    "Reset the offsets of a group whose name is so long that the title needs more than eighty columns.",
    (
        Step("Save them", "A file.", NOTHING_CHANGES),
        Step("Commit them", "What is committed.", ManualStep("Put them back:", (LONG,))),
        Step("Look", "Nothing.", NOTHING_CHANGES),
    ),
    seen=("Broker 1 is alive.",),
    tables=(
        PlanTable(
            "Offsets",
            ("TOPIC", "OFFSET", "NOTE"),
            (
                (
                    "orders",
                    "4",
                    "this is a long note which has to be folded so that it does not leave the terminal",
                ),
            ),
            ("a: a sign",),
        ),
    ),
    documents=(Document("JSON", '{"version": 1}'),),
    warnings=("Mind the gap.",),
    afterwards=(ManualStep("Change this:", ("group.id=x" + "y" * 90,)),),
    details={"offsets": [1]},
)


def _actions(*failing: Exception | None) -> tuple[Action, ...]:
    def action(number: int, failure: Exception | None) -> Action:
        async def run() -> str:
            if failure is not None:
                raise failure
            return f"report {number}"

        return run

    return tuple(action(number, failure) for number, failure in enumerate(failing, start=1))


def _applied(*failing: Exception | None) -> tuple[RepairResult, list[tuple[int, str]]]:
    told: list[tuple[int, str]] = []
    repair = Repair(PLAN, _actions(*failing))
    return asyncio.run(apply(repair, lambda number, report: told.append((number, report)))), told


def test_every_step_is_done_and_reported() -> None:
    """In order, while it happens."""
    result, told = _applied(None, None, None)
    assert result.failure is None
    assert told == [(1, "report 1"), (2, "report 2"), (3, "report 3")]
    assert json.loads(json.dumps(result_document(result)))["applied"] is True


@pytest.mark.parametrize("failure", [StepFailed("it broke."), TimedOut("it broke."), OSError("it broke.")])
def test_the_first_step_that_breaks_ends_it(failure: Exception) -> None:
    """What was done is kept, and how to take it back is told, the last first."""
    result, told = _applied(None, None, failure)
    assert result.failure == "it broke."
    assert told == [(1, "report 1"), (2, "report 2")]
    assert [way.lines for way in result.undo_steps] == [(LONG,)]
    text = render_failure(result)
    assert "Step 3 of 3 broke: Look.\n  it broke." in text
    assert "Done so far:\n  1. Save them.\n  2. Commit them." in text
    assert "run the same command again" in text
    assert "To go back:" in text


def test_when_nothing_was_done_it_says_so() -> None:
    """So that nobody looks for what to undo."""
    result, _ = _applied(StepFailed("it broke."), None, None)
    assert "Nothing was changed." in render_failure(result)
    assert result.undo_steps == []


def test_our_own_mistakes_are_not_hidden() -> None:
    """A defect keeps its traceback."""
    with pytest.raises(ZeroDivisionError):
        _applied(ZeroDivisionError(), None, None)


def test_a_plan_fits_the_terminal_and_its_commands_can_be_pasted() -> None:
    """Long commands go on behind backslashes; other lines stay whole."""
    lines = render(PLAN).splitlines()
    too_long = [line for line in lines if len(line) > WIDTH]
    assert [line.strip() for line in too_long] == ["group.id=x" + "y" * 90]
    start = next(at for at, line in enumerate(lines) if "kelpie reset" in line)
    command = []
    for line in lines[start:]:
        command.append(line)
        if not line.endswith("\\"):
            break
    assert len(command) > 1
    as_a_shell_reads_it = "\n".join(command).replace("\\\n", "")
    assert shlex.split(as_a_shell_reads_it) == shlex.split(LONG)


def test_commands_keep_the_properties_that_they_need() -> None:
    """On a secured cluster a pasted command would be refused without them."""
    plan = PLAN.with_properties("my client.properties")
    (line,) = plan.steps[1].undo.lines
    words = shlex.split(line)
    assert words[words.index("--command-config") - 2 :][:4] == [
        "-b",
        "kafka-1.example.org:9092,kafka-2.example.org:9092",
        "--command-config",
        "my client.properties",
    ]
    assert plan.afterwards == PLAN.afterwards
    result = RepairResult(plan, ["done"] * len(plan.steps))
    assert result.undo_steps == [plan.steps[1].undo], "the other steps change nothing"


def test_names_cannot_drive_the_terminal() -> None:
    """A group's name may hold anything, also escape sequences."""
    text = render(Plan("reset", "Group \x1b[2Jx", tables=(PlanTable("T", ("N",), (("\x07",),)),)))
    assert all(sign.isprintable() or sign == "\n" for sign in text)
    assert "\\x1b[2Jx" in text


def test_the_end_says_whether_anything_can_be_done() -> None:
    """The last line is what people read."""
    assert "--apply" in render_end(PLAN)
    assert "nothing left" in render_end(Plan("reset", "t"))
    assert render_end(Plan("reset", "t", PLAN.steps, obstacles=("no",))) == "Nothing was changed."
    assert render_report(1, 3, "done.") == "1 of 3  done."


def test_a_plan_with_obstacles_is_not_applicable() -> None:
    """Whatever its steps."""
    assert PLAN.applicable
    assert not Plan("reset", "t", PLAN.steps, obstacles=("no",)).applicable
    assert not Plan("reset", "t").applicable


def test_long_tables_are_cut_for_people_only() -> None:
    """Programs get all rows as JSON."""
    rows = tuple((str(number),) for number in range(100))
    text = render(Plan("reset", "t", tables=(PlanTable("Rows", ("N",), rows),)))
    assert "… and 60 more; --json has them all" in text
