#!/usr/bin/env python3
"""Fits that Keras itself ran: tests/golden/keras_fits/<name>.{h5,safetensors}, the model before, and data with Keras's history.

Run with tensorflow and tf_keras (Keras 2) installed: make_keras_fits.py [name...]. Examples are in order, nothing is random but the first
weights, so the numbers are those of any exact implementation. x0, y0 are inputs and targets, w0 weights of examples; h:<key> is the list of a
key of the history; e:<i> is what evaluate gives in the end. The settings of each are in test_fits.c.
"""
import pathlib
import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
import numpy as np  # noqa: E402
import tf_keras as keras  # noqa: E402
from safetensors.numpy import save_file  # noqa: E402

OUT = pathlib.Path(__file__).resolve().parent / "keras_fits"
L = keras.layers


def data(shape, rows, seed=1):
    return np.random.default_rng(seed).normal(size=(rows,) + shape).astype("float32")


def labels(rows, classes, seed=2):
    return np.random.default_rng(seed).integers(0, classes, rows)


def one_hot(y, classes):
    return np.eye(classes, dtype="float32")[y]


def mlp():
    m = keras.Sequential([L.Dense(16, activation="relu", input_shape=(8,)), L.Dense(8, activation="tanh"), L.Dense(4, activation="softmax")])
    how = dict(optimizer=keras.optimizers.legacy.SGD(0.1, momentum=0.9), loss="categorical_crossentropy", metrics=["accuracy", "mse"])
    return m, how, [data((8,), 50)], [one_hot(labels(50, 4), 4)], dict(validation_split=0.2)


def convnet():
    m = keras.Sequential([L.Conv2D(6, 3, padding="same", use_bias=False, input_shape=(8, 8, 3)), L.BatchNormalization(), L.ReLU(),
                          L.MaxPooling2D(), L.Conv2D(8, 3, activation="relu", kernel_regularizer="l2"), L.BatchNormalization(momentum=0.9),
                          L.Flatten(), L.Dense(5, activation="softmax", activity_regularizer=keras.regularizers.l1(0.01))])
    how = dict(optimizer=keras.optimizers.legacy.Adam(0.01), loss="sparse_categorical_crossentropy", metrics=["accuracy"])
    return m, how, [data((8, 8, 3), 40)], [labels(40, 5).astype("int32")], dict(validation_split=0.25)


def lstm():
    m = keras.Sequential([L.LSTM(12, return_sequences=True, input_shape=(7, 4)), L.LSTM(6), L.Dense(1, activation="sigmoid")])
    how = dict(optimizer=keras.optimizers.legacy.RMSprop(0.01), loss="binary_crossentropy", metrics=["accuracy"])
    return m, how, [data((7, 4), 48)], [labels(48, 2).astype("float32")[:, None]], dict(validation_split=0.25)


def two_outputs():
    a, b = L.Input((5,), name="a"), L.Input((3,), name="b")
    x = L.Dense(8, activation="tanh", name="shared")(L.Concatenate(name="join")([a, b]))
    main = L.Dense(3, activation="softmax", name="main_output")(x)
    aux = L.Dense(2, name="aux_output", kernel_constraint="max_norm")(x)
    m = keras.Model([a, b], [main, aux])
    how = dict(optimizer=keras.optimizers.legacy.Adagrad(0.05), loss={"main_output": "categorical_crossentropy", "aux_output": "mse"},
              loss_weights={"main_output": 1.0, "aux_output": 0.3}, metrics={"main_output": "accuracy", "aux_output": "mae"})
    rows = 45
    return (m, how, [data((5,), rows), data((3,), rows, 5)], [one_hot(labels(rows, 3), 3), data((2,), rows, 7)], dict(validation_split=0.2))


def weighted():
    m = keras.Sequential([L.Dense(6, activation="elu", input_shape=(4,), bias_regularizer="l1"),
                          L.Dense(3, activation="softmax", kernel_constraint="unit_norm")])
    how = dict(optimizer=keras.optimizers.legacy.Adadelta(1.0), loss="sparse_categorical_crossentropy", metrics=["accuracy"], weighted_metrics=["accuracy"])
    w = np.random.default_rng(3).uniform(0, 2, 37).astype("float32")
    return m, how, [data((4,), 37)], [labels(37, 3).astype("int32")], dict(sample_weight=w)


def class_weights():
    m = keras.Sequential([L.Dense(6, activation="relu", input_shape=(4,)), L.Dense(3, activation="softmax")])
    how = dict(optimizer=keras.optimizers.legacy.SGD(0.1, nesterov=True, momentum=0.8, clipnorm=0.5), loss="sparse_categorical_crossentropy", metrics=["accuracy"])
    return m, how, [data((4,), 37)], [labels(37, 3).astype("int32")], dict(class_weight={0: 1.0, 1: 3.0, 2: 0.5})


FITS = dict(mlp=mlp, convnet=convnet, lstm=lstm, two_outputs=two_outputs, weighted=weighted, class_weights=class_weights)


def make(name):
    keras.backend.clear_session()
    keras.utils.set_random_seed(5)
    m, how, x, y, more = FITS[name]()
    m.save(OUT / f"{name}.h5", include_optimizer=False, save_format="h5")   # before compiling, or "accuracy" becomes the wrong one
    m.compile(**how)
    h = m.fit(x if len(x) > 1 else x[0], y if len(y) > 1 else y[0], batch_size=8, epochs=5, shuffle=False, verbose=0, **more)
    end = m.evaluate(x if len(x) > 1 else x[0], y if len(y) > 1 else y[0], batch_size=16, verbose=0)
    values = {f"x{i}": v for i, v in enumerate(x)} | {f"y{i}": np.asarray(v) for i, v in enumerate(y)}
    if "sample_weight" in more:
        values["w0"] = more["sample_weight"]
    for key, v in h.history.items():
        values[f"h:{key}"] = np.asarray(v, "float32")
    values["end"] = np.asarray(end, "float32")
    save_file(values, OUT / f"{name}.safetensors")
    print(name, {k: round(v[-1], 4) for k, v in h.history.items()})


for wanted in sys.argv[1:] or FITS:
    make(wanted)
