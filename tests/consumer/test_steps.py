"""The journal: what is kept of what a consumer did."""

from kelpie.consumer.steps import MOST_KEPT, ConsumerStep, StepHistory, StepKind


def _step(at: int, answer: str = "15", follows: str = "", asked_of: str = "broker 1") -> ConsumerStep:
    return ConsumerStep(at, StepKind.LOOKUP, asked_of, "FindCoordinator(g)", answer, 2, follows, failed=True)


def test_same_again_is_counted() -> None:
    """A consumer that asks for hours leaves one step, with how often and until when."""
    journal = StepHistory()
    for at in range(100, 600, 100):
        journal.add(_step(at, follows=f"It is looked for again in {at} ms."))
    (step,) = journal.steps
    assert (step.at, step.last_at, step.times) == (100, 500, 5)
    assert step.follows == "It is looked for again in 500 ms."


def test_another_answer_is_another_step() -> None:
    """And so is another broker."""
    journal = StepHistory()
    journal.add(_step(1))
    journal.add(_step(2, answer="broker 2"))
    journal.add(_step(3, asked_of="broker 3"))
    assert [step.times for step in journal.steps] == [1, 1, 1]


def test_conclusions_differ_by_what_they_say() -> None:
    """Nobody was asked, so there is nothing else to tell them apart by."""
    journal = StepHistory()
    for text in ("It takes on t-0.", "It takes on t-1.", "It takes on t-1."):
        journal.add(ConsumerStep(1, StepKind.ASSIGNMENT, "", "", "", 0, text))
    assert [step.times for step in journal.steps] == [1, 2]


def test_journal_forgets_the_oldest() -> None:
    """A consumer may run for years."""
    journal = StepHistory()
    for at in range(MOST_KEPT + 10):
        journal.add(_step(at, answer=str(at)))
    assert len(journal.steps) == MOST_KEPT
    assert journal.steps[0].at == 10
