"""Scrapes of Prometheus endpoints, and lines in them that are none."""

from kelpie.evidence.scrapes import MalformedLine, Sample, looks_like_scrape, read_scrape
from tests.evidence import truth, unpacked

KOP = "kop-3.2-scrapes"


def read(text: str) -> list[Sample | MalformedLine]:
    return list(read_scrape(text.splitlines()))


def test_samples_have_labels_values_types_and_times() -> None:
    """As the format says: escapes, a time of its own, special values, a type told before."""
    (one, two, three) = read(
        "# TYPE kafka_consumergroup_lag gauge\n"
        'kafka_consumergroup_lag{consumergroup="a\\"b\\\\c\\nd",partition="0"} 12 1794776373922\n'
        "up NaN\n"
        'requests_total{code="200",} +Inf\n'
    )
    assert isinstance(one, Sample)
    assert isinstance(two, Sample)
    assert isinstance(three, Sample)
    assert one == Sample(
        2,
        "kafka_consumergroup_lag",
        {"consumergroup": 'a"b\\c\nd', "partition": "0"},
        12.0,
        "gauge",
        1794776373922,
    )
    assert (two.name, two.labels, two.value != two.value) == ("up", {}, True)
    assert three.value == float("inf")


def test_lines_that_kop_does_not_escape_are_told_and_cost_only_themselves() -> None:
    """Prometheus loses the whole scrape over them."""
    file = "07_odd_names.prom"
    lines = (unpacked(KOP) / file).read_text(encoding="utf-8").split("\n")
    found = list(read_scrape(lines))
    told = [f"{file}:{it.line}: {it.text!r}" for it in found if isinstance(it, MalformedLine)]
    wanted = (truth(KOP) / "malformed_lines.txt").read_text(encoding="utf-8").splitlines()
    assert sorted(told) == sorted(line for line in wanted if line.startswith(file))
    assert sum(isinstance(it, Sample) for it in found) > 4000


def test_all_recorded_scrapes_are_known_for_what_they_are_and_nothing_else_is() -> None:
    """A log or an output of a tool is no scrape."""
    for file in unpacked(KOP).glob("*.prom"):
        assert looks_like_scrape(file.read_text(encoding="utf-8").splitlines()[:400]), file.name
    hostile = "# TYPE a counter\n" + 'a{group="x"y"} 1\n' * 9
    assert looks_like_scrape(hostile.splitlines()), "a scrape of which most lines are malformed is still one"
    for text in ("a 1\nb 2\n", "[2026-11-15 18:24:52,001] INFO x (kafka)\n", "orders:0:12\n", ""):
        assert not looks_like_scrape(text.splitlines())
