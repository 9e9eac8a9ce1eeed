"""The site of the documentation, built once for all tests that look at it."""

from pathlib import Path

import pytest

from website.build import build
from website.links import Links


@pytest.fixture(scope="package")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Links]:
    return build(tmp_path_factory.mktemp("site"))


@pytest.fixture
def site(built: tuple[Path, Links]) -> Path:
    return built[0]
