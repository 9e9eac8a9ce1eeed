"""Names of clusters."""

import pytest

from kelpie.pipeline.storage.lake import plain


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("payments", "payments"),
        ("MkU3OEVBNTcwNTJENDM2Qg", "MkU3OEVBNTcwNTJENDM2Qg"),
        ("../../etc/passwd", ".._.._etc_passwd"),
        ("it's 50% = \\ \n", "it_s_50_______"),
        ("", "_"),
        ("x" * 5000, "x" * 200),
    ],
)
def test_name_can_be_that_of_a_folder(name: str, expected: str) -> None:
    """Paths, quotes, signs that mean something in URLs: only letters, digits, dots and dashes are left."""
    assert plain(name) == expected
