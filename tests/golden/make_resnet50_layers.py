#!/usr/bin/env python3
"""tests/golden/resnet50_layers.txt: the layers of keras.applications.ResNet50 in Keras's order, by Keras itself.

A line each: name, class, output shape, numbers in weights, those that training changes, and the layers that it takes from. The input has no
name of its own in Keras, so it is "input" here. The last line has the sums.
"""
import os
import pathlib

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
import keras  # noqa: E402
import numpy as np  # noqa: E402


def count(weights):
    return sum(int(np.prod(w.shape)) for w in weights)


def name(layer):
    return "input" if isinstance(layer, keras.layers.InputLayer) else layer.name


def main():
    m = keras.applications.ResNet50(weights=None)
    lines = []
    for layer in m.layers:
        sources = [name(t._keras_history.operation) for node in layer._inbound_nodes for t in node.input_tensors]
        shape = ",".join("None" if d is None else str(d) for d in layer.output.shape)
        lines.append(" ".join([name(layer), type(layer).__name__, shape, str(count(layer.weights)), str(count(layer.trainable_weights)), *sources]))
    lines.append(f"{count(m.weights)} {count(m.trainable_weights)}")
    pathlib.Path(__file__).with_name("resnet50_layers.txt").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
