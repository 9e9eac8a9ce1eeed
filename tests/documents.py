"""What commands print with --json, held to the published schemas."""

import json
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema

SCHEMAS = Path(__file__).parents[1] / "docs" / "schemas"


@cache
def validator(schema: str) -> Any:
    text = (SCHEMAS / f"{schema}.json").read_text(encoding="utf-8")
    return jsonschema.Draft202012Validator(json.loads(text))


def checked(schema: str, text: str) -> Any:
    """The document, which is as its schema says, and ASCII alone."""
    assert text.isascii()
    document = json.loads(text)
    validator(schema).validate(document)
    return document
