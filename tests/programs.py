"""Programs that `make programs` fetches: installed, or beside Python."""

import os
import shutil
import sys
from pathlib import Path

import pytest


def find(name: str) -> str | None:
    return shutil.which(name, path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")


def need(name: str) -> str:
    """Its path; where it is missing, the test is skipped."""
    return find(name) or pytest.skip(f"there is no {name} here: make programs")
