"""Files of arrays that are damaged, or made to do harm."""

import io
import json
import os
import struct
import tracemalloc
import zipfile

import numpy as np
import pytest

from panels import make_panel
from rbfdiffnet import RBFDiffNet
from rbfdiffnet.forecasting import saving
from rbfdiffnet.forecasting.saving import FORMAT_VERSION, Damaged, read_arrays, write_arrays
from rbfdiffnet.support import files as whole_files

ARRAYS = {"panel/y": np.arange(5.0), "ids": np.array(["a", "ü"]), "none": np.zeros((0, 2))}


def npy(values=None, header=None, content=b""):
    """An array as a member, or one with a header of one's own."""
    file = io.BytesIO()
    if header is None:
        np.lib.format.write_array(file, values)
    else:
        np.lib.format.write_array_header_1_0(file, header)
        file.write(content)
    return file.getvalue()


def zipped(path, members, compression=zipfile.ZIP_DEFLATED):
    with zipfile.ZipFile(path, "w", compression) as file:
        for name, content in members.items():
            file.writestr(name, content)
        file.comment = saving._LABEL + bytes(64)
    saving._seal(path)


def refused(path, match):
    """Read a file that must be refused, within little memory."""
    tracemalloc.start()
    try:
        with pytest.raises(Damaged, match=match):
            read_arrays(path)
        assert tracemalloc.get_traced_memory()[1] < 2**26
    finally:
        tracemalloc.stop()
    with pytest.raises(ValueError, match=path.name):
        RBFDiffNet.load(path)


def test_arrays_come_back_and_numpy_reads_them(tmp_path):
    path = tmp_path / "a.npz"
    fortran = np.asfortranarray(np.arange(6).reshape(2, 3))
    write_arrays(path, {**ARRAYS, "fortran": fortran})
    found, sealed = read_arrays(path)
    assert sealed
    with np.load(path) as file:
        for name, values in {**ARRAYS, "fortran": fortran}.items():
            np.testing.assert_array_equal(found[name], values)
            np.testing.assert_array_equal(file[name], values)
    first = path.read_bytes()
    write_arrays(path, {**ARRAYS, "fortran": fortran})
    assert path.read_bytes() == first


def test_every_cut_and_every_flipped_bit_is_noticed(tmp_path):
    path = tmp_path / "a.npz"
    write_arrays(path, {"y": np.arange(3)})
    whole = path.read_bytes()
    flipped = [bytearray(whole) for _ in range(8 * len(whole))]
    for position, damaged in enumerate(flipped):
        damaged[position // 8] ^= 1 << position % 8
    refused = 0
    for damaged in [*(whole[:size] for size in range(len(whole))), *flipped]:
        path.write_bytes(damaged)
        try:
            assert not read_arrays(path)[1]  # no digest: models of this version need one
        except Damaged:
            refused += 1
    assert 9 * len(whole) - refused == 9 * len(saving._LABEL)  # cut, or a bit of it flipped


def test_a_model_without_its_digest_or_of_another_format_is_refused(tmp_path):
    path = tmp_path / "model.npz"
    model = RBFDiffNet("D", preset="fast", lags=2).fit(make_panel("a", n=30))
    model.save(path)
    arrays, _ = read_arrays(path)
    np.savez(path, **arrays)
    with pytest.raises(ValueError, match="its digest is missing"):
        RBFDiffNet.load(path)
    for version, age in ((FORMAT_VERSION - 1, "an older"), (FORMAT_VERSION + 1, "a newer")):
        words = json.loads(arrays["json"].tobytes()) | {"version": version}
        arrays["json"] = np.frombuffer(json.dumps(words).encode(), dtype=np.uint8)
        np.savez(path, **arrays)
        with pytest.raises(ValueError, match=f"saved by {age} rbfdiffnet"):
            RBFDiffNet.load(path)


@pytest.mark.skipif(os.name != "posix", reason="pipes and devices of POSIX")
def test_what_has_no_end_is_refused(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", "/dev/zero"):
        with pytest.raises(OSError, match=r"no regular file.*(pipe|zero)"):
            RBFDiffNet.load(path)


def test_objects_are_never_unpickled(tmp_path):
    class Trap:
        def __reduce__(self):
            return (tmp_path / "executed").touch, ()

    path = tmp_path / "a.npz"
    for values in (np.array([Trap()], dtype=object), np.array([(Trap(), 1)], dtype="O,i4")):
        file = io.BytesIO()
        np.lib.format.write_array(file, values, allow_pickle=True)
        zipped(path, {"json.npy": file.getvalue()})
        refused(path, "no numbers or text")
    assert not (tmp_path / "executed").exists()


@pytest.mark.parametrize(
    "name", ["../../evil.npy", "/etc/evil.npy", "C:\\evil.npy", "a/../b.npy", "a/b/c.npy", ".npy"]
)
def test_names_that_lead_elsewhere_are_refused(tmp_path, name):
    path = tmp_path / "a.npz"
    zipped(path, {name: npy(np.arange(3))})
    refused(path, "no name of an array")
    assert [file.name for file in tmp_path.iterdir()] == ["a.npz"]


def test_links_are_not_followed(tmp_path):
    path = tmp_path / "a.npz"
    link = zipfile.ZipInfo("y.npy")
    link.external_attr = 0o120777 << 16
    with zipfile.ZipFile(path, "w") as file:
        file.writestr(link, "/etc/passwd")
    refused(path, "magic string")


def test_bombs_are_refused_before_they_unpack(tmp_path, monkeypatch):
    path = tmp_path / "a.npz"
    monkeypatch.setattr(whole_files, "_ALWAYS", 2**22)
    header = {"descr": "|u1", "fortran_order": False, "shape": (2**20,)}
    zipped(path, {f"y{i}.npy": npy(header=header, content=bytes(2**20)) for i in range(5)})
    assert path.stat().st_size < 2**14
    refused(path, "unpacked it would take more than")
    # One that says it is smaller than it is, is cut where it says, and its checksum is wrong.
    zipped(path, {"y.npy": npy(header=header, content=bytes(2**20))})
    data = path.read_bytes()
    size = struct.pack("<I", len(npy(header=header)) + 2**20)
    path.write_bytes(data[: -64 - 7].replace(size, struct.pack("<I", 1000)) + data[-64 - 7 :])
    monkeypatch.setattr(saving, "_LABEL", b"none")
    refused(path, "Bad CRC|larger or smaller")


@pytest.mark.parametrize(
    ("descr", "shape"),
    [
        ("<f8", (2**50,)),
        ("<U0", (2**50,)),
        ("|u1", (2**40, 2**40)),
        ("<f8", (-1,)),
        ("<U9999", (9,)),
    ],
)
def test_headers_that_lie_are_refused(tmp_path, descr, shape):
    path = tmp_path / "a.npz"
    header = {"descr": descr, "fortran_order": False, "shape": shape}
    zipped(path, {"y.npy": npy(header=header, content=bytes(8))})
    refused(path, "larger or smaller|no numbers or text")
    zipped(path, {"y.npy": npy(header=header)})
    refused(path, "larger or smaller|no numbers or text")


def test_other_ways_of_packing_and_too_many_members_are_refused(tmp_path, monkeypatch):
    path = tmp_path / "a.npz"
    for compression in (zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA):
        zipped(path, {"y.npy": npy(np.arange(3))}, compression)
        refused(path, "packed in another way")
    monkeypatch.setattr(saving, "_MOST_MEMBERS", 10)
    zipped(path, {f"y{i}.npy": npy(np.arange(3)) for i in range(11)})
    refused(path, "too many members")
    inner = path.read_bytes()
    zipped(path, {"y.npy": inner})
    refused(path, "too many members|magic string")


def test_what_packs_too_well_is_not_packed(tmp_path, monkeypatch):
    path, values = tmp_path / "a.npz", {"y": np.zeros(10**6)}
    monkeypatch.setattr(whole_files, "_ALWAYS", 10**6)
    write_arrays(path, values)
    assert path.stat().st_size > 2 * 10**6
    np.testing.assert_array_equal(read_arrays(path)[0]["y"], values["y"])


def test_an_array_is_in_memory_once_while_it_is_read(tmp_path):
    values = np.zeros(2**21)
    values[0] = 1.0 / 3.0  # so no narrower type will do
    write_arrays(tmp_path / "zeros.npz", {"a": values})
    tracemalloc.start()
    arrays, _ = read_arrays(tmp_path / "zeros.npz")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    np.testing.assert_array_equal(arrays["a"], values)
    assert peak < 1.5 * values.nbytes
