"""Every API file says what it is and what changed in each version."""

import re
import sys
from pathlib import Path

import pytest

from kelpie.wire import api as package
from kelpie.wire.apis import NAMES, api, module_name
from kelpie.wire.schema import declaration_of
from tests.wire.messages import versions_of


@pytest.mark.parametrize("key", NAMES, ids=NAMES.get)
def test_the_head_of_the_file_tells_every_version(key: int) -> None:
    """A version without a note sends the reader to Kafka's sources."""
    spoken = api(key)
    head = sys.modules[spoken.request.__module__].__doc__ or ""
    assert head.startswith(f"{spoken.name} (api key {key}): ")
    noted = [int(version) for version in re.findall(r"^v(\d+) +\S", head, flags=re.M)]
    assert noted == list(versions_of(key))


@pytest.mark.parametrize("key", NAMES, ids=NAMES.get)
def test_request_and_response_have_the_same_versions(key: int) -> None:
    """They travel in pairs."""
    assert declaration_of(api(key).request) == declaration_of(api(key).response)


def test_every_file_is_an_api_and_every_api_has_a_file() -> None:
    """No leftovers, nothing that cannot be reached."""
    files = {path.stem for path in Path(package.__file__).parent.glob("*.py")} - {"__init__"}
    assert files == {module_name(name) for name in NAMES.values()}
