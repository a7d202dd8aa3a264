#!/usr/bin/env python3
"""Model files that no Keras would write and nobody should be able to harm others with: tests/golden/keras_bad/*.h5.

Run with h5py installed: make_keras_bad.py. All are keras2-dense.h5 with its kernel put elsewhere, or said to be larger than it is.
With Keras 3: make_keras_bad.py held_twice, the .keras files that it writes and cannot read itself.
"""
import pathlib
import shutil
import sys

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


def held_twice():
    """A network in two others, and in a wrapper and the model itself: Keras keeps its weights in one place."""
    import keras
    L = keras.layers

    def model(name, x, *outputs):
        return keras.Model(x, list(outputs) if len(outputs) > 1 else outputs[0], name=name)

    def dense(name, inside):
        x = keras.Input((3,))
        return model(name, x, L.Dense(2 if inside is not None else 3, name=f"{name}_dense")(inside(x) if inside is not None else x))

    core, x = dense("core", None), keras.Input((3,))
    model("model", x, L.Add(name="sum")([dense("left", core)(x), dense("right", core)(x)])).save(OUT / "held_by_two.keras")
    core, x, steps = dense("core", None), keras.Input((3,)), keras.Input((4, 3))
    model("model", [steps, x], L.TimeDistributed(core, name="each")(steps), core(x)).save(OUT / "held_and_wrapped.keras")
    for path in OUT.glob("held_*.keras"):
        try:
            keras.models.load_model(path)
        except ValueError as e:
            print(path.name, "as expected:", str(e).splitlines()[0])
        else:
            sys.exit(f"this Keras loads {path.name}: read it too")


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
    held_twice() if sys.argv[1:] == ["held_twice"] else main()
