"""What the controller answers to a repair: whether it took all that was asked."""

from typing import Any

from kelpie.client.admin.rows import Rows
from kelpie.errors import describe, info
from kelpie.repair.applying import StepFailed


def check_request(what: str, rows: Rows[Any]) -> None:
    """Raises StepFailed for an error of the whole request."""
    for answer in rows.refused:
        raise StepFailed(f"{what}: {_in_words(answer.error, answer.message)}")


def check_partitions(asked: int, rows: Rows[Any]) -> None:
    """Raises StepFailed if the controller refused the request, or some of its partitions."""
    check_request("The controller refuses", rows)
    refused = [f"{row.name}: {_in_words(row.error, row.message)}" for row in rows if row.error]
    if refused:
        raise StepFailed(
            f"The controller took {asked - len(refused)} of {asked} partitions, and refused the others; the "
            f"first: {refused[0]}"
        )


def _in_words(error: int, message: str) -> str:
    return f"{describe(error)}. {message or info(error).meaning}"
