"""What rules could not decide, by what is missing."""

from kelpie.doctor.open_questions import Lack, Open, OpenQuestion, OpenQuestions

_ENDS = Lack("KLP309", ("the end of the log",), "stalled")
_LOGS = Lack("KLP201", ("logs",), "rebalance-storm")


def test_groups_that_lack_the_same_are_one_question() -> None:
    """Ten thousand groups without logs are one line of a report."""
    questions = OpenQuestions()
    questions.add(_LOGS, "c")
    for group in ("b", "a"):
        questions.add_alike((_ENDS, _LOGS), group) if group == "b" else questions.add(_ENDS, group)
    assert questions.by_lack() == (
        OpenQuestion("KLP201", "rebalance-storm", ("logs",), ("b", "c")),
        OpenQuestion("KLP309", "stalled", ("the end of the log",), ("a", "b")),
    )


def test_a_question_about_the_cluster_names_no_group() -> None:
    """Nobody can list the groups then."""
    of_cluster = Open("KLP106", "offsets-topic-at-risk", None, ("the leader",))
    (question,) = OpenQuestions.of([of_cluster]).by_lack()
    assert question == OpenQuestion("KLP106", "offsets-topic-at-risk", ("the leader",), ())


def test_rows_of_tables_come_back_as_the_same_questions() -> None:
    """The pipeline keeps a row for each group, and reads them back."""
    questions = OpenQuestions()
    questions.add(_ENDS, "a")
    questions.add(_ENDS, None)
    questions.add(_LOGS, None)
    lacks = (_ENDS, _LOGS)
    for group in ("b", "c"):
        questions.add_alike(lacks, group)
    rows = questions.rows()
    assert rows[0] == Open("KLP309", "stalled", "a", ("the end of the log",))
    assert OpenQuestions.of(rows).by_lack() == questions.by_lack()


def test_groups_without_questions_are_not_noted() -> None:
    questions = OpenQuestions()
    questions.add_alike((), "a")
    assert (questions.rows(), questions.by_lack()) == ([], ())
