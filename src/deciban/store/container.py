"""The container of a model file: the safetensors format, read without trusting it.

    8 bytes             N, the length of the header, little-endian
    N bytes             the header: JSON; its `__metadata__` holds the model and two digests; spaces at the end
    the rest            the arrays, one after another in the order of the header, little-endian

Everything is checked before memory of a size that the file claims is allocated: lengths against the size of the file,
offsets against each other, shapes against offsets. Arrays are views of the bytes that were read, or of a memory map.
"""

from __future__ import annotations

import json
import mmap
import os
import re
import stat
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from math import isfinite, prod
from typing import Any, BinaryIO, Literal, NoReturn

import numpy as np

from deciban.errors import Argument, ModelFileError, Remedy
from deciban.statistics import Array

FORMAT = 1
MOST_HEADER = 2**24  # bytes
MOST_SIZE = 2**40  # numbers in an array, and along one axis
OPENING = f'{{"__metadata__":{{"deciban":"{FORMAT}","header":"'
HEX = 64  # hexadecimal digits of a BLAKE2b-256 digest
ALIGNED = 64  # the arrays begin at a multiple of this many bytes
DTYPES = {
    "F64": "<f8",
    "I64": "<i8",
    "U64": "<u8",
    "F32": "<f4",
    "I32": "<i4",
    "U32": "<u4",
    "I16": "<i2",
    "U16": "<u2",
    "I8": "|i1",
    "U8": "|u1",
    "BOOL": "|b1",
}  # widest first: arrays are stored in this order, so that each is aligned to the width of its numbers
CODES = {np.dtype(spelt): code for code, spelt in DTYPES.items()}
_CHUNK = 2**22  # bytes hashed or written at a time


@dataclass(frozen=True)
class Entry:
    """Type, shape and position of an array in the file."""

    dtype: str  # a key of DTYPES
    shape: tuple[int, ...]
    begin: int  # in bytes from the start of the arrays
    end: int


@dataclass(frozen=True, eq=False)
class Container:
    """An opened file: the model as JSON text, and the bytes of its arrays."""

    path: str
    model: str
    digest: str  # of the arrays
    entries: Mapping[str, Entry]
    data: Array | mmap.mmap | None  # bytes of the arrays, or a map of the whole file; None if they were not asked for
    start: int  # offset of the arrays in the file

    @property
    def size(self) -> int:
        """Number of bytes of all arrays."""
        return max((entry.end for entry in self.entries.values()), default=0)

    def array(self, name: str) -> Array:
        """Return a read-only view of an array."""
        entry = self.entries[name]
        if entry.begin == entry.end:
            return np.zeros(entry.shape, DTYPES[entry.dtype])
        dtype = np.dtype(DTYPES[entry.dtype])
        assert self.data is not None
        flat = np.frombuffer(self.data, dtype, prod(entry.shape), self.before + entry.begin)
        return flat.reshape(entry.shape)

    @property
    def before(self) -> int:
        """Offset of the arrays in `data`."""
        return self.start if isinstance(self.data, mmap.mmap) else 0

    def verify(self) -> None:
        """Compute the digest of all arrays; ModelFileError if it differs from that in the header."""
        digest = blake2b(digest_size=HEX // 2)
        assert self.data is not None
        end = self.before + self.size
        with memoryview(self.data) as view:  # type: ignore[arg-type]  # an array is a buffer
            for at in range(self.before, end, _CHUNK):
                digest.update(view[at : min(at + _CHUNK, end)])
        if digest.hexdigest() != self.digest:
            raise damaged(self.path, "the arrays were changed after they were written: their digest differs")


def damaged(path: str, what: str) -> ModelFileError:
    """Return the error for a file that was changed after it was written."""
    damage = f"{what}. The file is damaged or was changed:"
    return ModelFileError(damage, place=path, remedy="restore a copy, or fit the model again.")


# -- writing ---------------------------------------------------------------------------------------------------------
def in_order(arrays: Mapping[str, Array]) -> list[str]:
    """Return the names of arrays in the order of their data: widest numbers first."""
    widths = list(DTYPES)
    return sorted(arrays, key=lambda name: widths.index(CODES[arrays[name].dtype]))


def header(model: str, arrays: Mapping[str, Array], data_digest: str = "0" * HEX) -> bytes:
    """Return the first 8 + N bytes of a file."""
    parts, at = [], 0
    for name in in_order(arrays):
        array = arrays[name]
        entry = {
            "dtype": CODES[array.dtype],
            "shape": list(array.shape),
            "data_offsets": [at, at + array.nbytes],
        }
        parts.append(f",{json.dumps(name)}:{json.dumps(entry, separators=(',', ':'))}")
        at += array.nbytes
    blank = f'{OPENING}{"0" * HEX}","data":"{data_digest}","model":{json.dumps(model)}}}{"".join(parts)}}}'.encode()
    blank += b" " * (-(8 + len(blank)) % ALIGNED)
    if len(blank) > MOST_HEADER:
        raise ModelFileError(
            f"the header of the model has {len(blank):,} bytes; at most {MOST_HEADER:,} are allowed. "
            "The model has too many blocks for one file: use fewer columns."
        )
    return len(blank).to_bytes(8, "little") + _signed(blank)


def _signed(text: bytes) -> bytes:
    """Return the header with its digest, which is computed with zeros in place of the digest."""
    at = len(OPENING)
    blank = text[:at] + b"0" * HEX + text[at + HEX :]
    return text[:at] + blake2b(blank, digest_size=HEX // 2).hexdigest().encode() + text[at + HEX :]


def chunks(arrays: Mapping[str, Array]) -> Iterable[memoryview]:
    """Yield the bytes of the arrays in chunks."""
    joined = bytearray()  # small arrays are written together
    for name in in_order(arrays):
        array = np.ascontiguousarray(arrays[name])
        if not array.size:
            continue
        whole = memoryview(array.reshape(-1).view(np.uint8).data)
        if len(joined) + len(whole) <= _CHUNK:
            joined += whole
            continue
        if joined:
            yield memoryview(joined)
            joined = bytearray()
        for at in range(0, len(whole), _CHUNK):
            yield whole[at : at + _CHUNK]
    if joined:
        yield memoryview(joined)


# -- reading ---------------------------------------------------------------------------------------------------------
def open_container(path: str | os.PathLike[str], arrays: Literal["read", "map", "none"] = "read") -> Container:
    """Check the header of a file, and read or map its arrays."""
    called = os.fspath(path)
    with open(path, "rb", opener=_open_at_once) as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise ModelFileError(f"{called} is a pipe, a device or a socket, not a file. Give a file of a model.")
        size = status.st_size
        length = int.from_bytes(file.read(8), "little")
        opening = file.read(min(len(OPENING), max(size - 8, 0)))
        _check_opening(called, size, length, opening)
        text = opening + file.read(length - len(opening))
        if len(text) < length:
            raise damaged(called, f"the header has {len(text):,} of {length:,} bytes")
        if _signed(text) != text:
            raise damaged(called, "the header was changed after it was written: its digest differs")
        names = _parse(called, text)
        meta = names.pop("__metadata__", None)
        if not (isinstance(meta, dict) and set(meta) == {"deciban", "header", "data", "model"}):
            raise damaged(called, "__metadata__ does not have the four keys deciban, header, data and model")
        if not all(isinstance(value, str) for value in meta.values()):
            raise damaged(called, "__metadata__ holds something that is not text")
        entries = _entries(called, names, size - 8 - length)
        data: Array | mmap.mmap | None = None
        if arrays == "map":
            data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        elif arrays == "read":
            data = _read(called, file, size - 8 - length)
    return Container(called, meta["model"], meta["data"], entries, data, 8 + length)


def _open_at_once(path: str, flags: int) -> int:
    """Open a file without waiting for the writer of a pipe."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def _read(called: str, file: BinaryIO, size: int) -> Array:
    """Return the bytes of the arrays, read-only."""
    data = np.empty(size, np.uint8)
    got = file.readinto(data.data) if size else 0  # type: ignore[attr-defined]  # of a buffered reader
    if got < size:
        raise damaged(called, f"the arrays have {got:,} of {size:,} bytes")
    data.flags.writeable = False
    return data


def _check_opening(called: str, size: int, length: int, opening: bytes) -> None:
    """Check the first bytes: the format, its version and the length of the header."""
    version = re.match(rb'\{"__metadata__":\{"deciban":"(\d{1,9})"', opening)
    if version and int(version[1]) > FORMAT:
        raise ModelFileError(
            f"{called} has format {int(version[1])}; this deciban reads format {FORMAT}. "
            "A newer deciban wrote it: upgrade with pip install -U deciban."
        )
    if opening != OPENING.encode():
        remedy = Remedy("Give a file that ", Argument("written_by", python="`save`"), " has written.")
        raise ModelFileError(f"{called} is not a model file of deciban.", remedy=remedy)
    if length > MOST_HEADER:
        raise damaged(called, f"the header claims {length:,} bytes; at most {MOST_HEADER:,} are allowed")
    if length < len(OPENING) + HEX or 8 + length > size:
        raise damaged(called, f"the header claims {length:,} bytes, but the file has {size:,}")


def _parse(called: str, text: bytes) -> dict[str, Any]:
    try:
        names = parse_json(text)
    except (ValueError, RecursionError) as error:
        raise damaged(called, f"the header is not JSON ({error})") from None
    if not isinstance(names, dict):
        raise damaged(called, "the header is not a JSON object")
    return names


def _entries(called: str, names: Mapping[str, Any], size: int) -> dict[str, Entry]:
    """Return the positions of the arrays, which must be contiguous and fill the file exactly."""
    entries, at = {}, 0
    for name, claim in names.items():
        entry = _entry(called, name, claim)
        if entry.begin != at or entry.end > size:
            raise damaged(
                called, f"array {name[:80]!r} is at {entry.begin}:{entry.end}, but must begin at {at} of {size:,} bytes"
            )
        entries[name], at = entry, entry.end
    if at != size:
        raise damaged(called, f"the arrays have {at:,} bytes, but the file holds {size:,} bytes of arrays")
    return entries


def _entry(called: str, name: str, claim: object) -> Entry:
    """Check what the header says of one array."""
    where = f"array {name[:80]!r}"
    if not re.fullmatch(r"[A-Za-z0-9_.]{1,250}", name):
        raise damaged(called, f"{where} has a name with characters that are not allowed, or a name that is too long")
    if not isinstance(claim, dict) or set(claim) != {"dtype", "shape", "data_offsets"}:
        raise damaged(called, f"{where} does not have the three keys dtype, shape and data_offsets")
    dtype, shape, offsets = claim["dtype"], claim["shape"], claim["data_offsets"]
    if not isinstance(dtype, str) or dtype not in DTYPES:
        raise damaged(called, f"{where} has the unknown type {str(dtype)[:20]!r}")
    if not isinstance(shape, list) or len(shape) > 8 or not all(type(n) is int and 0 <= n <= MOST_SIZE for n in shape):
        raise damaged(called, f"{where} has no valid shape")
    if not isinstance(offsets, list) or len(offsets) != 2 or not all(type(n) is int and n >= 0 for n in offsets):
        raise damaged(called, f"{where} has no valid position")
    width = np.dtype(DTYPES[dtype]).itemsize
    if prod(max(n, 1) for n in shape) > MOST_SIZE or offsets[1] - offsets[0] != width * prod(shape):
        raise damaged(called, f"{where} of shape {shape} does not fit in the bytes {offsets[0]}:{offsets[1]}")
    return Entry(dtype, tuple(shape), *offsets)


# -- JSON ------------------------------------------------------------------------------------------------------------
def parse_json(text: str | bytes) -> Any:
    """Parse standard JSON; ValueError for duplicate keys, NaN and infinities, which Python would accept."""
    if isinstance(text, bytes):
        text = text.decode(json.detect_encoding(text))
    if text.startswith("\ufeff"):
        raise ValueError("a byte order mark is not JSON")
    return _DECODER.decode(text)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) < len(pairs):
        raise ValueError("a key occurs twice")
    return values


def _refuse(word: str) -> NoReturn:
    raise ValueError(f"{word} is not a number")


def _finite(digits: str) -> float:
    number = float(digits)
    if not isfinite(number):
        raise ValueError(f"{digits[:20]} is too large")
    return number


_DECODER = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_refuse, parse_float=_finite)
