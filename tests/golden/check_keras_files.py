#!/usr/bin/env python3
"""Has Keras itself load the models that Yoke saved and compares what it predicts: check_keras_files.py FOLDER.

FOLDER is filled by `YOKE_SAVED=FOLDER build/tests/keras/test_golden`, test_resume and test_applications. Each file is loaded by Keras 3, and by Keras 2 (tf_keras) unless it is
written for Keras 3, as every archive is; inputs and expected outputs are those of tests/golden/keras. Weights of ResNet50 are loaded
by keras.applications.ResNet50 itself. Exit status 1 if any differs or does not load.
"""
import json
import os
import pathlib
import struct
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
import h5py  # noqa: E402
import numpy as np  # noqa: E402
import keras as keras3  # noqa: E402
import tf_keras as keras2  # noqa: E402

# Of these, Keras 3 does not read Keras 2's files rightly, whoever wrote them.
OTHERS = {"nested": "calls of a nested model are numbered from 1 or from 0", "two_kinds": "calls of a nested model are numbered from 1 or from 0",
          "pair_inside": "calls of a nested model are numbered from 1 or from 0",
          "activations": "hard_sigmoid is another function",
          "sequences": "a channel dropout takes no 'trainable'", "spatial_dropout2d": "a channel dropout takes no 'trainable'",
          "transformer_block": "attention is built by other arguments", "attention": "attention is built by other arguments",
          "attention_masked": "attention is built by other arguments", "encoder_in_time": "a wrapped model is looked for elsewhere",
          "separable_conv1d_causal": "Keras 3 has no causal one",
          "lstm_no_bias": "hard_sigmoid is another function", "lstm_states": "Keras 3 takes first states by name only"}
OTHERS_IN_ARCHIVES = {"separable_conv1d_causal": "Keras 3 has no causal one"}
VALUES = pathlib.Path(__file__).resolve().parent / "keras"


def safetensors(path):
    data = path.read_bytes()
    n = struct.unpack("<Q", data[:8])[0]
    types = {"F32": "<f4", "I32": "<i4"}
    return {name: np.frombuffer(data[8 + n + t["data_offsets"][0]:8 + n + t["data_offsets"][1]], types[t["dtype"]]).reshape(t["shape"])
            for name, t in json.loads(data[8:8 + n]).items() if name != "__metadata__"}


def numbered(values, prefix):
    return [values[f"{prefix}{i}"] for i in range(len(values)) if f"{prefix}{i}" in values]


def is_for_keras3(path):
    return "keras3" in path.name or path.suffix == ".keras"


def rebuild_optimizer(m, path):
    """Keras 3 builds the optimizer of an .h5 file, its own ones too, for other variables than those it then trains: so once more, by hand."""
    optimizer = type(m.optimizer).from_config(m.optimizer.get_config())
    m.compile(optimizer, {"main": "sparse_categorical_crossentropy", "aux": "mean_squared_error"}, loss_weights={"main": 1.0, "aux": 0.5})
    optimizer.build(m.trainable_variables)
    with h5py.File(path) as f:
        group = f["optimizer_weights"]
        for v, name in zip(optimizer.variables, group.attrs["weight_names"], strict=True):
            v.assign(group[name][()])


def go_on(path, k):
    """Five more steps of a training whose optimizer came with the file: how far the losses are from those of tests/golden/keras_resumes."""
    values = safetensors(VALUES.parent / "keras_resumes" / path.with_suffix(".safetensors").name.removeprefix("resume_"))
    k.backend.clear_session()
    m = k.models.load_model(path)
    if k is keras3 and path.suffix == ".h5":
        rebuild_optimizer(m, path)
    losses = []
    for _ in range(5):
        if hasattr(m, "reset_metrics"):
            m.reset_metrics()
        losses.append(np.atleast_1d(m.train_on_batch(values["x"], [values["y0"], values["y1"]]))[0])
    return float(np.max(np.abs(np.asarray(losses) - values["losses"])))


def resnet50(path, k):
    """How far ResNet50 of Keras with the weights in the file is from what Yoke predicts with them."""
    values = safetensors(path.with_name("resnet50.safetensors"))
    k.backend.clear_session()
    m = k.applications.ResNet50(weights=str(path), input_shape=values["in0"].shape[1:], classes=values["out0"].shape[1])
    return float(np.max(np.abs(m.predict(values["in0"], verbose=0) - values["out0"])))


def predict(path, k, ins, outs):
    """How far what Keras predicts is from what is expected."""
    k.backend.clear_session()
    got = k.models.load_model(path, compile=False).predict(ins if len(ins) > 1 else ins[0], verbose=0)
    got = got if isinstance(got, (list, tuple)) else [got]
    return max(float(np.max(np.abs(a - b) / np.maximum(1, np.abs(b)))) for a, b in zip(got, outs, strict=True))


def differs(what, limit, measure):
    """Does it fail, or is what it measures above the limit? Then that is told."""
    try:
        worst = measure()
        if worst <= limit:
            return False
        print(f"{what} differ by {worst:.3g}")
    except Exception as e:  # noqa: BLE001
        print(f"{what}: {str(e).splitlines()[0][:300]}")
    return True


def main():
    bad = checked = 0
    for name, k in (("resnet50_tf.h5", keras2), ("resnet50_tf.h5", keras3), ("resnet50.weights.h5", keras3)):
        path = pathlib.Path(sys.argv[1]) / name
        if not path.exists():
            continue
        checked += 1
        bad += differs(f"{name}, {k.__name__}: predictions", 1e-5, lambda: resnet50(path, k))
    for path in sorted([*pathlib.Path(sys.argv[1]).glob("resume_*.h5"), *pathlib.Path(sys.argv[1]).glob("resume_*.keras")]):
        checked += 1
        bad += differs(f"{path.name}: losses", 1e-4, lambda: go_on(path, keras3 if is_for_keras3(path) else keras2))
    for path in sorted([*pathlib.Path(sys.argv[1]).glob("keras*.h5"), *pathlib.Path(sys.argv[1]).glob("keras*.keras")]):
        values = safetensors(VALUES / path.with_suffix(".safetensors").name)
        ins, outs = numbered(values, "in"), numbered(values, "out")
        for name, k in (("Keras 2", keras2), ("Keras 3", keras3)):
            if is_for_keras3(path) and k is keras2:
                continue                          # it does not read what is written for Keras 3
            others = OTHERS_IN_ARCHIVES if path.suffix == ".keras" else OTHERS
            why = others.get(path.stem.split("-")[1]) if path.name.startswith("keras2") and k is keras3 else None
            if why:
                print(f"{path.name}: not by {name}: {why}")
                continue
            checked += 1
            bad += differs(f"{path.name}, {name}: outputs", 1e-5, lambda: predict(path, k, ins, outs))
    print(f"{checked} loads, {bad} bad")
    return 1 if bad or not checked else 0


if __name__ == "__main__":
    sys.exit(main())
