"""Random groups: members, what they read, what they own."""

from dataclasses import dataclass

from hypothesis import strategies as st

from kelpie.assignors import MemberSubscription, Plan
from kelpie.model.names import TopicPartition

TOPICS = ("apples", "bees", "clover", "dew")
# Beyond U+FFFF, and between the surrogates and U+FFFF, is where Java's order and Python's differ.
_NAMES = st.text(alphabet="abZ09-_.é\uffee\U0001f40e", min_size=1, max_size=4)


@dataclass(frozen=True, slots=True)
class Group:
    members: tuple[MemberSubscription, ...]
    counts: dict[str, int]

    @property
    def partitions(self) -> set[TopicPartition]:
        """Those that somebody reads."""
        read = {topic for member in self.members for topic in member.topics}
        return {
            TopicPartition(topic, number)
            for topic, count in self.counts.items()
            if topic in read
            for number in range(count)
        }


@st.composite
def groups(draw: st.DrawFn, *, equal: bool | None = None, owning: str = "nothing") -> Group:
    """What members own: "nothing"; "theirs", each partition one member at most; or "anything" they claim."""
    counts = draw(st.dictionaries(st.sampled_from(TOPICS), st.integers(0, 9), min_size=1))
    names = draw(st.lists(_NAMES, min_size=1, max_size=6, unique=True))
    some = st.lists(st.sampled_from(TOPICS), min_size=1, unique=True)
    shared = draw(some) if equal or (equal is None and draw(st.booleans())) else None
    claimed = _claimed(draw, len(names), counts, owning)
    members = []
    for at, name in enumerate(names):
        topics = tuple(shared or draw(some))
        owned = tuple(partition for partition in claimed[at] if partition.topic in topics)
        generation = draw(st.integers(3, 5)) if owning == "anything" else 3
        instance = f"i-{names[-at - 1]}" if draw(st.booleans()) else None
        members.append(MemberSubscription(name, topics, instance, owned, generation))
    return Group(tuple(members), counts)


def _claimed(
    draw: st.DrawFn, members: int, counts: dict[str, int], owning: str
) -> list[list[TopicPartition]]:
    claimed: list[list[TopicPartition]] = [[] for _ in range(members)]
    gone = owning == "anything"  # A topic may have had more partitions before it was created anew.
    for topic, count in counts.items() if owning != "nothing" else ():
        for number in range(count + gone):
            most = members if owning == "anything" else 1
            for at in draw(st.lists(st.integers(0, members - 1), max_size=most, unique=True)):
                claimed[at].append(TopicPartition(topic, number))
    return claimed


def owners(plan: Plan) -> dict[TopicPartition, str]:
    """Who owns what; fails if a partition is given twice."""
    owned: dict[TopicPartition, str] = {}
    for member_id, partitions in plan.items():
        for partition in partitions:
            assert partition not in owned, f"{partition} is given twice"
            owned[partition] = member_id
    return owned


def unevenness(plan: Plan) -> int:
    """Smaller is more even."""
    return sum(len(own) ** 2 for own in plan.values())
