"""The controller: whom to ask for what only it can do, and what it says when it will not.

Brokers of a KRaft cluster pass such requests on to the controller; with ZooKeeper it must be asked itself.
"""

from collections.abc import Sequence

from kelpie.client.client_errors import ClientError
from kelpie.client.nodes import Nodes
from kelpie.errors import ErrorCode, describe, info
from kelpie.repair.applying import StepFailed

LIMIT_S = 30.0
"""How long the controller may take to answer."""


async def controller_of(nodes: Nodes) -> int:
    """The controller, if it can be reached; else somebody who may pass it on. Raises ClientError."""
    failure: ClientError | None = None
    for node in sorted(nodes.brokers, key=lambda node: node != nodes.controller_id):
        try:
            await nodes.connection(node)
        except ClientError as error:
            failure = failure or error
        else:
            return node
    raise failure or ClientError("The cluster lists no broker.")


def said(error: int, message: str | None = None) -> str:
    return f"{describe(error)}. {message or info(error).meaning}"


def check(what: str, error: int, message: str | None = None) -> None:
    """Raises StepFailed for an error of the whole request."""
    if error != ErrorCode.NONE:
        raise StepFailed(f"{what}: {said(error, message)}")


def check_each(asked: int, refused: Sequence[str]) -> None:
    """Raises StepFailed if some of the partitions that were asked for were refused."""
    if refused:
        raise StepFailed(
            f"The controller took {asked - len(refused)} of {asked} partitions, and refused the others; the "
            f"first: {refused[0]}"
        )
