"""Whatever is asked of pages is answered or refused: no request makes a defect of it.

`make test` asks more than a hundred times, `make fuzz` twenty thousand times and more (KELPIE_FUZZ_PAGES).
"""

from collections import Counter
from random import Random
from urllib.parse import urlencode

from starlette.testclient import TestClient

from kelpie.web.application import application
from kelpie.web.exposition import EXPORTERS
from kelpie.web.pages import OF_CLUSTER
from tests.fuzzing.mutation import mutated, run_seeds, runs
from tests.web.looking import a_watch
from tests.web.looks import a_healthy_cluster

PAGES = runs("KELPIE_FUZZ_PAGES", 150)
NOW = 1_790_000_000_000
GROUPS = ("billing", "audit")
PATHS = (
    "/",
    "/index.json",
    "/rules",
    "/rule",
    "/rule.json",
    "/metrics",
    "/v3/kafka",
    "/v3/kafka/{cluster}/consumer/billing/lag",
    "/nowhere",
    *OF_CLUSTER,
    *(f"{path}.json" for path in OF_CLUSTER),
)
CLUSTERS = ("main", "main", "main", "other", "%ff", "..%2f", "%00")
PARAMETERS = (
    "code",
    "find",
    "from",
    "group",
    "groups",
    "id",
    "lang",
    "page",
    "partition",
    "severity",
    "sort",
    "state",
    "to",
    "topic",
)
VALUES = (
    b"",
    b"0",
    b"-1",
    b"1e400",
    b"NaN",
    b"9" * 400,
    "²".encode(),
    b"\x00",
    b"\xff\xfe",
    b"\xed\xa0\x80",
    b"a" * 5000,
    b"billing",
    b"orders",
    b"KLP101",
    b"lag",
    b"-lag",
    b"1h",
    b"2026-11-17T00:00",
    b"9999-12-31T23:59:59.999Z",
    b"0001-01-01",
    b"1790000000000",
    b"-9223372036854775808",
    b"<script>",
    b"{{7*7}}",
    b"zh",
    b"de\r\nX: y",
    b"[",
)
LANGUAGES = ("zh", "de;q=9999", "*;q=nan", "de;q=1e999", ";;;q=,", "a" * 3000)


def test_whatever_is_asked_of_pages_is_answered_or_refused() -> None:
    """An answer of 500 is a defect, and its traceback fills the log of the server."""
    looks = [(at, a_healthy_cluster(*GROUPS)) for at in (NOW - 60_000, NOW)]
    browser = TestClient(application([a_watch(*looks)], ["testserver"], tuple(EXPORTERS)))
    answered: Counter[int] = Counter()

    def ask(chance: Random) -> None:
        path = chance.choice(PATHS).replace("{cluster}", chance.choice(CLUSTERS))
        query = [(chance.choice(PARAMETERS), _value(chance)) for _ in range(chance.randrange(5))]
        headers = {"accept-language": chance.choice(LANGUAGES)} if chance.random() < 0.2 else {}
        method = chance.choice(("GET",) * 8 + ("HEAD", "POST"))
        address = f"{path}?{urlencode(query)}" if query else path
        answer = browser.request(method, address, headers=headers, follow_redirects=False)
        assert answer.status_code < 500, (method, address)
        answered[answer.status_code] += 1

    run_seeds(ask, PAGES, every=1000)
    assert answered.total() < 100 or {200, 404, 405} <= set(answered), "most requests have to reach a page"


def _value(chance: Random) -> bytes:
    value = chance.choice(VALUES)
    return mutated(value, chance, others=VALUES) if chance.random() < 0.3 else value
