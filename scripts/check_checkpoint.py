#!/usr/bin/env python3
"""Read checkpoints without Yoke: by the rules of the safetensors format, and with the safetensors package and NumPy if they are there.

usage: check_checkpoint.py [--weights FILE] [--need-package] PATH

PATH is a checkpoint, or the folder of a saver. Checked are layout, both checksums of each file, and the folder's list; with
--weights, that the newest checkpoint holds every tensor of that safetensors file, byte for byte. With --need-package a missing
package is an error. Prints one line a checkpoint; the exit status is 1 if anything is wrong.
"""
import argparse
import json
import pathlib
import struct
import sys

try:
    import numpy
    from safetensors import safe_open
    from safetensors.numpy import load_file
except ImportError:
    numpy = None

SIZE = {"F64": 8, "I64": 8, "F32": 4, "I32": 4, "F16": 2, "BF16": 2, "U8": 1, "BOOL": 1}


def make_table():
    table = []
    for b in range(256):
        for _ in range(8):
            b = b >> 1 ^ (0x82F63B78 if b & 1 else 0)
        table.append(b)
    return table


TABLE = make_table()


def crc32c(data, crc=0):
    crc ^= 0xFFFFFFFF
    for b in data:
        crc = crc >> 8 ^ TABLE[(crc ^ b) & 0xFF]
    return crc ^ 0xFFFFFFFF


def parse(path):
    """(notes, {name: (dtype, shape, bytes)}) of a file, all of whose bytes belong to something."""
    raw = path.read_bytes()
    length = struct.unpack("<Q", raw[:8])[0]
    text, data = raw[8:8 + length], raw[8 + length:]
    header = json.loads(text)
    notes = header.pop("__metadata__", {})
    tensors, at = {}, 0
    for name, t in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
        begin, end = t["data_offsets"]
        count = 1
        for d in t["shape"]:
            count *= d
        assert begin == at and end - begin == count * SIZE[t["dtype"]], f"{path}: {name} is at {begin} to {end}"
        tensors[name] = (t["dtype"], t["shape"], data[begin:end])
        at = end
    assert at == len(data), f"{path}: {len(data) - at} bytes belong to no tensor"
    if "yoke.header_crc32c" in notes:
        said = notes["yoke.header_crc32c"]
        key = b'"yoke.header_crc32c":"'
        digits = text.index(key) + len(key)
        zeroed = text[:digits] + b"00000000" + text[digits + 8:]
        assert f"{crc32c(raw[:8] + zeroed):08x}" == said, f"{path}: the header's checksum is wrong"
        assert f"{crc32c(data):08x}" == notes["yoke.data_crc32c"], f"{path}: the data's checksum is wrong"
    return notes, tensors


def compare_package(path, notes, tensors):
    """The package sees the same names, shapes, bytes and notes."""
    with safe_open(str(path), framework="numpy") as f:
        assert f.metadata() == notes, f"{path}: the package reads other notes"
    arrays = load_file(str(path))
    assert set(arrays) == set(tensors), f"{path}: the package reads other names"
    for name, array in arrays.items():
        _, shape, data = tensors[name]
        assert list(array.shape) == shape and array.tobytes() == data, f"{path}: the package reads {name} differently"
        if array.dtype.kind == "f":
            assert numpy.isfinite(array).all(), f"{path}: {name} is not finite"


def check_list(folder, files):
    text = (folder / "checkpoint.json").read_bytes()
    listing = json.loads(text)
    cut = text.index(b',\n "crc32c": "')
    assert f"{crc32c(text[:cut]):08x}" == listing["crc32c"], f"{folder}: the list's checksum is wrong"
    listed = [c["file"] for c in listing["checkpoints"]]
    assert sorted(listed) == sorted(f.name for f in files), f"{folder}: the list has {listed}"
    for c in listing["checkpoints"]:
        assert (folder / c["file"]).stat().st_size == c["bytes"], f"{c['file']} has another size"
    return [folder / name for name in listed]


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--weights", type=pathlib.Path)
    p.add_argument("--need-package", action="store_true")
    p.add_argument("path", type=pathlib.Path)
    a = p.parse_args()
    if a.need_package and numpy is None:
        sys.exit("the packages numpy and safetensors are not there")
    files = [a.path]
    if a.path.is_dir():
        files = check_list(a.path, list(a.path.glob("ckpt-*.safetensors")))
    for f in files:
        notes, tensors = parse(f)
        if numpy is not None:
            compare_package(f, notes, tensors)
        total = sum(len(t[2]) for t in tensors.values())
        print(f"{f}: step {notes.get('yoke.step', '?')}, {len(tensors)} tensors, {total} bytes")
    if a.weights:
        for name, t in parse(a.weights)[1].items():
            assert tensors.get(name) == t, f"{name} differs between {files[-1]} and {a.weights}"
    print(f"{len(files)} checkpoints are whole; read {'with safetensors and NumPy too' if numpy is not None else 'by the rules of the format'}")


if __name__ == "__main__":
    main()
