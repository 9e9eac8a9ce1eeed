"""Where the lab and real Kafka differ, and should.

A rule looks at two answers to one question that are not the same, and says whether that is all right.

What scripts never do, because real Kafka trips over it and leaves the group hanging, which the lab does not:

- Offer a protocol twice in one JoinGroup: its members then support it "more often than there are members",
  ClassicGroup.selectProtocol raises in the timer that ends the rebalance, and the join is never answered.
- Offer a subscription whose lengths point behind its end: ConsumerProtocol raises a RuntimeException that
  ClassicGroup.computeSubscribedTopics does not expect, in the same place. (A subscription that breaks off is
  expected, and played.)
What is kept from being seen:

- A commit of which nothing can be stored (OFFSET_METADATA_TOO_LARGE) creates the group all the same, in
  memory. Kafka describes and lists groups as of the last write to their offsets partition, so that the group,
  and who joins it, is not shown before something else is written there, by whatever group. The lab shows it
  at once. `Side` has something written after such a commit.
- Offsets in the group without a name: all scripts would share it. A test of its own stores them.
"""

from collections.abc import Callable
from typing import Any

from kelpie.errors import ErrorCode

Rule = Callable[[str, Any, Any], bool]


def verifications_in_one_request(op: str, real: Any, lab: Any) -> bool:
    """A group that is not part of the transaction: TRANSACTION_ABORTABLE, or INVALID_TXN_STATE for versions
    that do not know that. But Kafka puts verifications that are under way together and treats all of them as
    the first one, so that with other producers about, a client may get the other code.
    """
    if op != "txn_commit":
        return False
    either = {ErrorCode.TRANSACTION_ABORTABLE, ErrorCode.INVALID_TXN_STATE}

    def told(answer: Any) -> Any:
        return [
            (topic["name"], part["partition_index"], part["error_code"] in either or part["error_code"])
            for topic in answer["topics"]
            for part in topic["partitions"]
        ]

    return isinstance(real, dict) and isinstance(lab, dict) and told(real) == told(lab)


RULES: tuple[Rule, ...] = (verifications_in_one_request,)


def is_known(op: str, real: Any, lab: Any) -> bool:
    """`op` is that of the step, or `state` for how the group is described after it."""
    return any(rule(op, real, lab) for rule in RULES)
