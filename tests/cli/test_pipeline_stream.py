"""kelpie pipeline stream: how it is ended."""

import signal
from collections.abc import Iterator

import pytest

from kelpie.cli.pipeline_stream import _until_interrupted

_BOTH = (signal.SIGINT, signal.SIGTERM)


@pytest.fixture
def _handlers() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in _BOTH}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.usefixtures("_handlers")
@pytest.mark.parametrize("number", _BOTH)
def test_first_signal_lets_it_finish_and_the_second_ends_it(number: int) -> None:
    """To make tables of all that has come may take minutes; nobody has to wait for that."""
    stopped = _until_interrupted()
    assert not stopped.is_set()
    signal.raise_signal(number)
    assert stopped.is_set()
    assert signal.getsignal(number) is signal.SIG_DFL
