#!/usr/bin/env python3
"""Model files that no Keras would write and nobody should be able to harm others with: tests/golden/keras_bad/*.h5.

Run with h5py installed: make_keras_bad.py. All are keras2-dense.h5 with its kernel put elsewhere, or said to be larger than it is.
"""
import pathlib
import shutil

import h5py
import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
OUT = HERE / "keras_bad"
KERNEL = "model_weights/dense/dense/kernel:0"


def external_link(f, shape):
    f[KERNEL] = h5py.ExternalLink("other.h5", "/x")


def soft_link(f, shape):
    f["elsewhere"] = np.zeros(shape, "f4")
    f[KERNEL] = h5py.SoftLink("/elsewhere")


def external_group(f, shape):
    del f["model_weights/dense"]
    f["model_weights/dense"] = h5py.ExternalLink("other.h5", "/")


def virtual(f, shape):
    layout = h5py.VirtualLayout(shape, "f4")
    layout[...] = h5py.VirtualSource("other.h5", "x", shape)
    f.create_virtual_dataset(KERNEL, layout)


def external_data(f, shape):
    f.create_dataset(KERNEL, shape, "f4", external=[("other.bin", 0, int(np.prod(shape)) * 4)])


def huge(f, shape):
    f.create_dataset(KERNEL, (1 << 30, 1 << 10), "f4")


def impossible(f, shape):
    f.create_dataset(KERNEL, (1 << 31, 1 << 31), "f4", chunks=(16, 16))


def texts(f, shape):
    f.create_dataset(KERNEL, data=np.full(shape, b"text"))


def main():
    OUT.mkdir(exist_ok=True)
    for change in (external_link, soft_link, external_group, virtual, external_data, huge, impossible, texts):
        path = OUT / f"{change.__name__}.h5"
        shutil.copy(HERE / "keras" / "keras2-dense.h5", path)
        with h5py.File(path, "r+") as f:
            shape = f[KERNEL].shape
            del f[KERNEL]
            change(f, shape)
    there = np.full(shape, 0.5, "f4")
    with h5py.File(OUT / "other.h5", "w") as f:                # where the files lead, so that following them would work
        f["x"] = there
        f["dense/kernel:0"] = there
        f["dense/bias:0"] = there[0]
        f.attrs["weight_names"] = [b"dense/kernel:0", b"dense/bias:0"]
    (OUT / "other.bin").write_bytes(there.tobytes())


if __name__ == "__main__":
    main()
