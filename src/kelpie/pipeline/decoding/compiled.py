"""Compiled functions, and the numbers that they load from an address.

Positions are addresses, not indices: an index into a numpy array costs a test for negative numbers at each
byte, and that test keeps the compiler from loading eight bytes at once (measured: twice the time). The
price is that nothing checks bounds but the code itself. The caller of a compiled function keeps the array
alive, and leaves PAD bytes behind its end, so that a word may be loaded wherever a byte may.
"""

import hashlib
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from importlib import resources
from typing import Any

import numba
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from kelpie import folders

PAD = 8

_WORD = ir.IntType(64)


@cache
def _digest() -> str:
    """Of the text of all of this package."""
    digest = hashlib.sha256()
    for file in sorted(resources.files(__package__).iterdir(), key=lambda file: file.name):
        if file.name.endswith(".py"):
            digest.update(file.read_bytes())
    return digest.hexdigest()[:16]


@cache
def _folder() -> str:
    """Compiled code is kept as pickle, and run: all of it must be of this user. Raises OSError."""
    folder = folders.trusted_cache("compiled", _digest())
    for file in folder.iterdir():
        with suppress(FileNotFoundError):  # A draft that another process has renamed.
            folders.trusted(file)
    return str(folder)


class Locator:
    """Where numba keeps compiled code: one folder for a text of this package, wherever that text is.

    Numba itself looks only at the file that a function is in, and would keep what was compiled from another
    file as it was before. And it keeps code by the path of that file: executors have this package in a zip
    file, in a folder of its own for every run.
    """

    def __init__(self, function: Any) -> None:
        self._line = function.__code__.co_firstlineno

    @classmethod
    def from_function(cls, function: Any, _: str) -> "Locator | None":
        """None where nothing may be kept (a user without a home), or others may write what is kept."""
        try:
            locator = cls(function)
            locator.ensure_cache_path()
        except (RuntimeError, OSError):
            return None
        return locator

    def ensure_cache_path(self) -> None:
        tempfile.TemporaryFile(dir=self.get_cache_path()).close()

    def get_cache_path(self) -> str:
        return _folder()

    def get_source_stamp(self) -> str:
        return _digest()

    def get_disambiguator(self) -> str:
        return str(self._line)


def compiled(function: Callable[..., Any]) -> Any:
    """Machine code, kept on disk, so that only the first process compiles; not kept where nothing may be."""
    before = numba.config.CACHE_LOCATOR_CLASSES
    try:
        numba.config.CACHE_LOCATOR_CLASSES = f"{__name__}.{Locator.__name__}"
        return numba.njit(cache=True)(function)
    except RuntimeError:  # Numba found no place to keep it.
        return numba.njit(function)
    finally:
        numba.config.CACHE_LOCATOR_CLASSES = before


def _load(bits: int, result: Any = types.int64, *, swapped: bool, signed: bool = False) -> Any:
    @intrinsic
    def load(_: Any, address: Any) -> Any:
        def generate(_: Any, builder: Any, __: Any, arguments: Any) -> Any:
            number = ir.IntType(bits)
            pointer = builder.inttoptr(arguments[0], ir.PointerType(number))
            value = builder.load(pointer, align=1)
            if swapped:
                value = builder.bswap(value)
            if bits < _WORD.width:
                value = builder.sext(value, _WORD) if signed else builder.zext(value, _WORD)
            return value

        return result(types.int64), generate

    return load


def _store(bits: int) -> Any:
    @intrinsic
    def store(_: Any, address: Any, value: Any) -> Any:
        def generate(context: Any, builder: Any, __: Any, arguments: Any) -> Any:
            number = ir.IntType(bits)
            pointer = builder.inttoptr(arguments[0], ir.PointerType(number))
            value = arguments[1] if bits == _WORD.width else builder.trunc(arguments[1], number)
            builder.store(value, pointer, align=1)
            return context.get_dummy_value()

        return types.void(types.int64, types.int64), generate

    return store


_LITTLE = sys.byteorder == "little"

int16 = _load(16, swapped=_LITTLE, signed=True)
int32 = _load(32, swapped=_LITTLE, signed=True)
int64 = _load(64, swapped=_LITTLE, signed=True)
"""Big-endian, as Kafka writes them."""

byte = _load(8, swapped=False)
word = _load(64, types.uint64, swapped=not _LITTLE)
"""Eight bytes of text, the first one lowest."""

get32, put32 = _load(32, swapped=False, signed=True), _store(32)
get64, put64 = _load(64, swapped=False, signed=True), _store(64)
"""Numbers in arrays of numpy's: an array that is passed on costs reference counts, its address does not."""
_put8 = _store(8)


@compiled
def copy(at, source, size):  # type: ignore[no-untyped-def]
    """Copies bytes, eight at a time. Returns the address behind the copy."""
    end = source + size
    while source + 8 <= end:
        put64(at, get64(source))
        source += 8
        at += 8
    while source < end:
        _put8(at, byte(source))
        source += 1
        at += 1
    return at


@compiled
def differ(one, other, size):  # type: ignore[no-untyped-def]
    """Whether so many bytes are not the same."""
    end = one + size
    while one + 8 <= end:
        if get64(one) != get64(other):
            return True
        one += 8
        other += 8
    while one < end:
        if byte(one) != byte(other):
            return True
        one += 1
        other += 1
    return False
