"""Arrays in one file: a NumPy ``.npz``, sealed with a digest and read without trust.

Every array is a ``.npy`` member of a zip file. Its comment is the SHA-256 digest of all bytes
before, so a file in which a single bit has changed is refused. Reading executes nothing, writes
nothing to the disk, and returns no more bytes than `unpacked_limit` of the file's size.
"""

from __future__ import annotations

import hashlib
import io
import math
import re
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from rbfdiffnet.support.arrays import Arrays
from rbfdiffnet.support.files import replace_file
from rbfdiffnet.support.unpacking import unpacked_limit

__all__ = ["Damaged", "read_arrays", "write_arrays"]


_LABEL, _DIGITS = b"sha256:", 64
_MOST_MEMBERS = 100_000
_MEMBER = b"PK\x01\x02"  # begins what the directory says of a member
_NAME = re.compile(r"(\w+/)?\w+\.npy")
_KINDS = "biufU"


class Damaged(Exception):
    """What is wrong with a file of arrays, in a few words."""


def write_arrays(path: Any, arrays: Arrays) -> None:
    """Write arrays of numbers and text to a file, which is complete or not there."""
    arrays = {name: _narrowed(values) for name, values in arrays.items()}
    with replace_file(path) as temporary:
        _write(temporary, arrays, zipfile.ZIP_DEFLATED)
        size = sum(values.nbytes for values in arrays.values())
        if 1.1 * size > unpacked_limit(temporary.stat().st_size):  # what no reader would unpack
            _write(temporary, arrays, zipfile.ZIP_STORED)
        _seal(temporary)


def read_arrays(path: Any) -> tuple[Arrays, bool]:
    """Read arrays, and whether the file has a digest (which earlier versions did not write)."""
    data = Path(path).read_bytes()
    try:
        if data.count(_MEMBER) > _MOST_MEMBERS:
            raise Damaged("it has too many members")
        with zipfile.ZipFile(io.BytesIO(data)) as file:
            sealed = file.comment.startswith(_LABEL)
            digest = hashlib.sha256(memoryview(data)[:-_DIGITS]).hexdigest().encode()
            if sealed and file.comment != _LABEL + digest:
                raise Damaged("its digest is wrong")
            members, most = file.infolist(), unpacked_limit(len(data))
            if sum(member.file_size for member in members) > most:
                raise Damaged(f"unpacked it would take more than {most:,} bytes")
            arrays = {}
            for member in members:
                values = _read_member(file, member, most)
                most -= values.nbytes
                arrays[member.filename.removesuffix(".npy")] = values
    except (Damaged, MemoryError):
        raise
    except Exception as error:  # there is no end to what damaged bytes may lead to
        raise Damaged(str(error)) from error
    return arrays, sealed


def _narrowed(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the same numbers in a smaller type, where that loses nothing."""
    if values.dtype == np.float64:
        with np.errstate(over="ignore", invalid="ignore"):
            for narrow in (np.float16, np.float32):
                if np.array_equal(values.astype(narrow).astype(np.float64), values, equal_nan=True):
                    return values.astype(narrow)
    return values


def _write(path: Path, arrays: Arrays, compression: int) -> None:
    with zipfile.ZipFile(path, "w", compression) as file:
        for name, values in arrays.items():
            with file.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, values, allow_pickle=False)
        file.comment = _LABEL + bytes(_DIGITS)


def _seal(path: Path) -> None:
    """Write the digest of a zip file into its comment, which has room for it."""
    with path.open("r+b") as raw:
        raw.truncate(raw.seek(-_DIGITS, io.SEEK_END))
        raw.seek(0)
        raw.write(hashlib.file_digest(raw, "sha256").hexdigest().encode())


def _read_member(file: zipfile.ZipFile, member: zipfile.ZipInfo, most: int) -> npt.NDArray[Any]:
    """Read an array whose header says as many bytes as there are; floats as 64 bits."""
    if not _NAME.fullmatch(member.filename):
        raise Damaged(f"{member.filename!r} is no name of an array")
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise Damaged(f"{member.filename!r} is packed in another way")
    with file.open(member) as stream:
        version = np.lib.format.read_magic(stream)
        read = {
            (1, 0): np.lib.format.read_array_header_1_0,
            (2, 0): np.lib.format.read_array_header_2_0,
        }
        shape, fortran, dtype = read[version](stream)
        content = stream.read()  # to the end, where the checksum is compared
    if dtype.kind not in _KINDS or not dtype.itemsize:
        raise Damaged(f"{member.filename!r} has no numbers or text")
    if math.prod(shape) * dtype.itemsize != len(content):
        raise Damaged(f"{member.filename!r} is larger or smaller than it says")
    wide = np.dtype(np.float64) if dtype.kind == "f" else dtype
    if math.prod(shape) * wide.itemsize > most:
        raise Damaged(f"{member.filename!r} would take more than {most:,} bytes")
    flat: npt.NDArray[Any] = np.frombuffer(content, dtype).astype(wide)
    return flat.reshape(shape, order="F" if fortran else "C")
