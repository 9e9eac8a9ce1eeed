"""CRC-32 (messages of magic 0 and 1) and CRC-32C (batches), of the bytes between two addresses.

Where the processor knows CRC-32C (SSE 4.2), it does it, five times as fast; tables do it elsewhere.
"""

import platform

import numpy as np
from llvmlite import binding, ir
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from kelpie.pipeline.decoding.compiled import byte, compiled, get32, word

_LOW = np.uint64(0xFF)
_ALL = np.uint64(0xFFFFFFFF)
_ENTRY = np.uint64(4)
_NEXT = 1024
"""Bytes from one table to the next."""


def _tables(polynomial: int) -> NDArray[np.uint32]:
    """tables[0] is the table of Sarwate; tables[n] moves a byte n places further."""
    tables = np.zeros((8, 256), np.uint32)
    for number in range(256):
        value = number
        for _ in range(8):
            value = (value >> 1) ^ (polynomial if value & 1 else 0)
        tables[0, number] = value
    for place in range(1, 8):
        before = tables[place - 1]
        tables[place] = (before >> 8) ^ tables[0][before & 0xFF]
    return tables


CRC32 = _tables(0xEDB88320)
CRC32C = _tables(0x82F63B78)


@intrinsic
def _instruction(_, crc, eight):  # type: ignore[no-untyped-def]
    def generate(_, builder, __, arguments):  # type: ignore[no-untyped-def]
        number = ir.IntType(64)
        kind = ir.FunctionType(number, [number, number])
        name = "llvm.x86.sse42.crc32.64.64"
        return builder.call(builder.module.declare_intrinsic(name, (), kind), arguments)

    return types.uint64(types.uint64, types.uint64), generate


@compiled
def _looked_up(table, which, crc):  # type: ignore[no-untyped-def]
    return np.uint64(get32(table + np.int64(which) * _NEXT + np.int64((crc & _LOW) * _ENTRY))) & _ALL


@compiled
def _rest(at, stop, table, crc):  # type: ignore[no-untyped-def]
    """The last bytes, one by one."""
    while at < stop:
        crc = _looked_up(table, 0, crc ^ np.uint64(byte(at))) ^ (crc >> np.uint64(8))
        at += 1
    return np.int64(crc ^ _ALL)


@compiled
def checksum(at, stop, table):  # type: ignore[no-untyped-def]
    """`table`: the address of CRC32 or CRC32C."""
    crc = _ALL
    while at + 8 <= stop:
        eight = word(at) ^ crc
        crc = np.uint64(0)
        for place in range(8):
            crc ^= _looked_up(table, 7 - place, eight >> np.uint64(8 * place))
        at += 8
    return _rest(at, stop, table, crc)


def _checksum_by_instruction(at, stop, table):  # type: ignore[no-untyped-def]
    crc = _ALL
    while at + 8 <= stop:
        crc = _instruction(crc, word(at))
        at += 8
    return _rest(at, stop, table, crc)


_is_x86 = platform.machine() in ("x86_64", "AMD64")
_has_instruction = _is_x86 and binding.get_host_cpu_features().get("sse4.2", False)
checksum_of_batch = compiled(_checksum_by_instruction) if _has_instruction else checksum
