from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser

from tests.browsers import a_browser


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with a_browser() as opened:
        yield opened
