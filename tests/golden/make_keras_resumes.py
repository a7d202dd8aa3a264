#!/usr/bin/env python3
"""Trainings that Keras itself went on with: tests/golden/keras_resumes/<flavour>-<optimizer>.{h5,keras,safetensors}.

Run with tensorflow, tf_keras (Keras 2) and keras (3) installed: make_keras_resumes.py [name...]. A model is trained for 3 steps (but for `untrained`)
and saved with its optimizer, then trained for 5 more steps on the same batch: x, y, the losses and the weights at the end are beside the file. `old` are tf_keras's
optimizers as they were until 2.10, whose state tf_keras's archives do not have.
"""
import os
import pathlib
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
import numpy as np  # noqa: E402
import keras as keras3  # noqa: E402
import tf_keras as keras2  # noqa: E402
from safetensors.numpy import save_file  # noqa: E402

OUT = pathlib.Path(__file__).resolve().parent / "keras_resumes"
NEW = {
    "sgd": lambda o: o.SGD(0.05),
    "nesterov": lambda o: o.SGD(0.05, momentum=0.9, nesterov=True),
    "adam": lambda o: o.Adam(0.02, clipnorm=0.3),
    "rmsprop": lambda o: o.RMSprop(0.01),
    "rmsprop_centered": lambda o: o.RMSprop(0.01, momentum=0.5, centered=True),
    "adagrad": lambda o: o.Adagrad(0.1),
    "adadelta": lambda o: o.Adadelta(1.0),
}
CASES = {f"keras2old-{k}": (keras2, keras2.optimizers.legacy, v) for k, v in NEW.items()}
CASES |= {f"keras2-{k}": (keras2, keras2.optimizers, v) for k, v in NEW.items()}
CASES |= {f"keras3-{k}": (keras3, keras3.optimizers, v) for k, v in NEW.items()}
CASES |= {f"{f}-adamw": (k, k.optimizers, lambda o: o.AdamW(0.02, weight_decay=0.1)) for f, k in (("keras2", keras2), ("keras3", keras3))}
CASES |= {f"keras2-{k}": (keras2, keras2.optimizers, v) for k, v in {
    "momentum": lambda o: o.SGD(0.05, momentum=0.9), "rmsprop_momentum": lambda o: o.RMSprop(0.01, momentum=0.5), "untrained": NEW["adam"]}.items()}
CASES["keras2old-adam_decay"] = (keras2, keras2.optimizers.legacy, lambda o: o.Adam(0.02, decay=0.1))


CASES |= {f"{f}-shared_norm": (k, k.optimizers, NEW["nesterov"]) for f, k in (("keras2", keras2), ("keras3", keras3))}


def model(k, shared):
    L = k.layers
    i = L.Input((4,), name="in")
    norm = L.BatchNormalization(name="norm", momentum=0.7 if shared else 0.99)
    x = L.Dense(5, activation="tanh", name="hidden")(i)
    x = norm(x)
    if shared:                                    # each call moves the averages
        x = norm(L.Dense(5, name="again")(norm(L.Dense(5, name="between")(x))))
    return k.Model(i, [L.Dense(3, activation="softmax", name="main")(x), L.Dense(2, name="aux")(x)])


for name in sys.argv[1:] or CASES:
    k, optimizers, make = CASES[name]
    k.backend.clear_session()
    k.utils.set_random_seed(11)
    m = model(k, name.endswith("shared_norm"))
    rng = np.random.default_rng(4)
    x = rng.normal(size=(12, 4)).astype("float32")
    y = [rng.integers(0, 3, 12).astype("int32"), rng.normal(size=(12, 2)).astype("float32")]
    m.compile(make(optimizers), {"main": "sparse_categorical_crossentropy", "aux": "mse"}, loss_weights={"main": 1.0, "aux": 0.5},
              metrics={"main": ["accuracy"], "aux": ["mae"]})
    for _ in range(0 if name.endswith("untrained") else 3):
        m.train_on_batch(x, y)
    if optimizers is not keras2.optimizers.legacy:
        m.save(OUT / f"{name}.keras")             # first: saving .h5 takes the optimizer out of what is saved later
    if not name.endswith("untrained"):            # tf_keras guesses in .h5 which accuracy that will be, and guesses wrong
        m.save(OUT / f"{name}.h5")
    losses = []
    for _ in range(5):
        if hasattr(m, "reset_metrics"):
            m.reset_metrics()
        losses.append(np.atleast_1d(m.train_on_batch(x, y))[0])
    values = {"x": x, "y0": y[0], "y1": y[1], "losses": np.asarray(losses, "float32")}
    values |= {f"w{i}": np.asarray(w) for i, w in enumerate(m.get_weights())}
    save_file(values, OUT / f"{name}.safetensors")
    print(name, losses)
