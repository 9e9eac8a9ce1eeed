"""What is derived is worked out once, and kept with the object."""

from copy import copy

from kelpie.model.derived import derived


class Group:
    """A group."""

    def __init__(self) -> None:
        self.asked = 0

    @derived
    def members(self) -> list[str]:
        """Its members."""
        self.asked += 1
        return ["app-1"]


def test_it_is_worked_out_once() -> None:
    """Rules ask for it again and again."""
    group = Group()
    assert group.members is group.members
    assert group.asked == 1


def test_a_copy_works_it_out_for_itself() -> None:
    """What is derived of a copy goes with the copy."""
    group = Group()
    assert copy(group).members == ["app-1"]
    assert "members" not in vars(group)


def test_its_documentation_is_that_of_the_function() -> None:
    """For help() and for pages."""
    assert Group.members.__doc__ == "Its members."
