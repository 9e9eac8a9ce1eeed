"""Times in addresses."""

from urllib.parse import parse_qs

import pytest

from kelpie.web.drawing.scale import DAY, HOUR, Frame
from kelpie.web.times import Period, asked

NOON = 1_800_014_400_000
"""2027-01-15 12:00 UTC."""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2027-01-15T12:00:00Z", NOON),
        ("2027-01-15T12:00", NOON),
        ("2027-01-15 12:00", NOON),
        ("2027-01-15T13:00:00+01:00", NOON),
        ("2027-01-15T13:00:00 01:00", NOON),
        ("2027-01-15", NOON - 12 * HOUR),
        (str(NOON), NOON),
        ("", None),
        ("yesterday", None),
        ("-5", None),
        ("9" * 39, None),
        ("9999-99-99", None),
        ("٣", None),
    ],
)
def test_a_time_is_read_as_people_and_programs_write_it(text: str, expected: int | None) -> None:
    assert asked({"at": text}, "at") == expected


def frame_of(address: str) -> Frame:
    words = {name: values[0] for name, values in parse_qs(address.removeprefix("?")).items()}
    begin, end = asked(words, "from"), asked(words, "to")
    assert begin is not None
    assert end is not None
    return Frame(begin, end)


WHOLE = Frame(NOON - DAY, NOON)


def test_without_times_everything_is_shown_or_what_is_usual() -> None:
    assert Period.of({}, WHOLE).frame == WHOLE
    assert Period.of({}, WHOLE, usual_ms=HOUR).frame == (NOON - HOUR, NOON)
    assert Period.of({}, WHOLE, usual_ms=2 * DAY).is_whole


def test_links_lead_to_other_parts_and_keep_the_rest_of_the_address() -> None:
    asked_for = {"name": "a&b", "from": "2027-01-15T06:00Z", "to": "2027-01-15T10:00Z"}
    period = Period.of(asked_for, WHOLE)
    assert period.frame == (NOON - 6 * HOUR, NOON - 2 * HOUR)
    assert period.earlier is not None
    assert parse_qs(period.earlier.removeprefix("?"))["name"] == ["a&b"]
    assert frame_of(period.earlier) == (NOON - 8 * HOUR, NOON - 4 * HOUR)
    assert frame_of(period.later or "") == (NOON - 4 * HOUR, NOON)
    assert frame_of(period.closer or "") == (NOON - 5 * HOUR, NOON - 3 * HOUR)
    assert frame_of(period.wider or "") == (NOON - 8 * HOUR, NOON)
    assert frame_of(period.everything) == WHOLE
    assert [span for span, _, _ in period.spans] == [HOUR // 4, HOUR, 6 * HOUR]


def test_at_its_ends_there_is_nothing_earlier_or_later() -> None:
    period = Period.of({}, WHOLE)
    assert (period.earlier, period.later, period.wider) == (None, None, None)


@pytest.mark.parametrize(
    "times",
    [
        {"from": "2027-01-15T10:00Z", "to": "2027-01-15T06:00Z"},
        {"from": "2030-01-01", "to": "2030-01-02"},
        {"from": "x", "to": "y"},
    ],
)
def test_times_that_make_no_sense_show_everything(times: dict[str, str]) -> None:
    assert Period.of(times, WHOLE).frame == WHOLE


def test_a_part_is_never_of_no_length() -> None:
    period = Period.of({"from": str(NOON - HOUR), "to": str(NOON - HOUR + 1)}, WHOLE)
    assert period.frame.span == 10_000
    assert period.closer is None
