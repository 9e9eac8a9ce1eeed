"""Other people's codecs, to be agreed with: kafka-python from version 0 on, kio up to the newest."""

import datetime
import functools
import importlib
import io
import pkgutil
import uuid
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any

import kafka.protocol
from kafka.protocol.api_message import ApiMessage
from kio.index import load_request_schema, load_response_schema
from kio.schema.index import api_key_map, schema_name_map
from kio.serial import entity_reader, entity_writer

from kelpie.wire.schema import NO_UUID, notes_of

REQUEST, RESPONSE = "request", "response"


class KafkaPython:
    name = "kafka-python"

    def __init__(self) -> None:
        for module in pkgutil.walk_packages(kafka.protocol.__path__, "kafka.protocol."):
            if ".old" not in module.name and "generate" not in module.name:
                importlib.import_module(module.name)
        self._classes: dict[tuple[int, str], Any] = {}
        waiting = [ApiMessage]
        while waiting:
            for cls in waiting.pop().__subclasses__():
                waiting.append(cls)
                if getattr(cls, "_class_version", 1) is None and cls.API_KEY is not None:
                    self._classes[cls.API_KEY, cls.type] = cls

    def versions(self, key: int, kind: str) -> range:
        cls = self._classes.get((key, kind))
        return range(cls.max_version + 1) if cls else range(0)

    def decode(self, key: int, kind: str, version: int, body: bytes) -> Any:
        message = self._classes[key, kind].decode(body, version=version)
        message._header = None  # decode() leaves it unset, and encode() stumbles over that
        return message

    def encode(self, key: int, kind: str, version: int, message: Any) -> bytes:
        return bytes(message.encode(version=version))

    def encoder(self, key: int, kind: str, version: int, message: Any) -> Callable[[], Any]:
        """For benchmarks: nothing but the library's own work."""
        return lambda: message.encode(version=version)

    def decoder(self, key: int, kind: str, version: int, body: bytes) -> Callable[[], Any]:
        cls = self._classes[key, kind]
        return lambda: cls.decode(body, version=version)


class Kio:
    name = "kio"

    def versions(self, key: int, kind: str) -> range:
        name = api_key_map.get(key)
        known = sorted(schema_name_map[name]) if name else []
        return range(known[0], known[-1] + 1) if known else range(0)

    @staticmethod
    @functools.cache
    def _schema(key: int, kind: str, version: int) -> Any:
        return (load_request_schema if kind == REQUEST else load_response_schema)(key, version)

    def decode(self, key: int, kind: str, version: int, body: bytes) -> Any:
        message, size = entity_reader(self._schema(key, kind, version))(body, 0)
        assert size == len(body)
        return message

    def encode(self, key: int, kind: str, version: int, message: Any) -> bytes:
        return self.encoder(key, kind, version, message)()

    def encoder(self, key: int, kind: str, version: int, message: Any) -> Callable[[], bytes]:
        write = entity_writer(self._schema(key, kind, version))

        def run() -> bytes:
            buffer = io.BytesIO()
            write(buffer, message)
            return buffer.getvalue()

        return run

    def decoder(self, key: int, kind: str, version: int, body: bytes) -> Callable[[], Any]:
        read = entity_reader(self._schema(key, kind, version))
        return lambda: read(body, 0)


def differences(ours: Any, theirs: Any, version: int, path: str = "") -> list[str]:
    """Fields that both know by the same name and that differ: a swap that bytes alone would hide."""
    if is_dataclass(ours):
        return [] if theirs is None else _struct_differences(ours, theirs, version, path)
    if isinstance(ours, list) and isinstance(theirs, list | tuple):
        if len(ours) != len(theirs):
            return [f"{path}: {len(ours)} and {len(theirs)} elements"]
        return [
            found
            for index, (a, b) in enumerate(zip(ours, theirs, strict=True))
            for found in differences(a, b, version, f"{path}[{index}]")
        ]
    return (
        [] if _plain(theirs) == _plain(ours) or _unset(ours, theirs) else [f"{path}: {ours!r} != {theirs!r}"]
    )


def _struct_differences(ours: Any, theirs: Any, version: int, path: str) -> list[str]:
    return [
        found
        for field in fields(ours)
        if version in notes_of(field).versions and hasattr(theirs, field.name)
        if not field.name.endswith("authorized_operations")  # kafka-python makes a set of names of the bits
        for found in differences(
            getattr(ours, field.name), getattr(theirs, field.name), version, f"{path}.{field.name}"
        )
    ]


def _unset(ours: Any, theirs: Any) -> bool:
    """A tagged struct that was not sent is None here and a struct of defaults there."""
    return ours is None and not isinstance(theirs, int | str | bytes | list | tuple)


def _plain(value: Any) -> Any:
    if isinstance(value, uuid.UUID):
        return value.bytes
    if value == NO_UUID:
        return None  # both libraries read the zero id as no id
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, datetime.timedelta):
        return round(value.total_seconds() * 1000)
    if isinstance(value, memoryview | bytearray):
        return bytes(value)
    return value
