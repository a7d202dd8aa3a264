#!/usr/bin/env python3
"""Small models saved by Keras itself, with inputs and what it predicts for them: tests/golden/keras/<flavour>-<name>.{h5,keras,safetensors}.
Where `again` is beside the outputs, the same inputs give that when they come a second time.

Run with tensorflow, tf_keras (Keras 2) and keras (3) installed: make_keras_models.py [name...], then make_keras_models.py archives [name...]; and
make_keras_models.py archives once more with tensorflow 2.14 and its own Keras instead, for keras214-*.keras, and with 2.13, for
keras_bad/keras213.keras.
Weights are random, batch statistics too, so that a layer that is left out or takes the wrong weight shows.
"""
import json
import ntpath
import os
import pathlib
import shutil
import struct
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
import h5py  # noqa: E402
import numpy as np  # noqa: E402
import keras as keras3  # noqa: E402
if keras3.__version__.startswith("3"):
    import tf_keras as keras2  # noqa: E402
    from tf_keras.src.saving import saving_lib  # noqa: E402
    from tf_keras.src.saving.legacy import hdf5_format  # noqa: E402

OUT = pathlib.Path(__file__).resolve().parent / "keras"
ROWS = 3
KERAS2_ONLY = {"attention_masked",  # Keras 3 writes how the mask is worked out as operations of its own
               "cudnn_lstm", "cudnn_gru", "cudnn_both_ways", "separable_conv1d_causal"}  # what it has not


def sequential(*layers):
    return lambda k, L: k.Sequential([layer(k, L) for layer in layers])


def one(shape, layer, dtype=None):
    """A functional model of one layer."""
    def build(k, L):
        x = L.Input(shape, dtype=dtype) if dtype else L.Input(shape)
        return k.Model(x, layer(L)(x))
    return build


def siamese(k, L):
    a, b = L.Input((6,), name="a"), L.Input((6,), name="b")
    shared = L.Dense(4, activation="tanh", name="shared")
    x, y = shared(a), shared(b)
    z = L.Concatenate(name="join")([x, y])
    return k.Model([a, b], [L.Dense(3, activation="softmax", name="main_output")(z), L.Dense(1, name="aux_output")(x)])


def nested(k, L):
    i = L.Input((8, 8, 3))
    inner_in = L.Input((8, 8, 3))
    h = L.Conv2D(4, 3, padding="same", activation="relu")(inner_in)
    h = L.BatchNormalization()(h)
    inner = k.Model(inner_in, L.GlobalAveragePooling2D()(h), name="encoder")
    left = inner(i)
    right = inner(L.ZeroPadding2D(((0, 0), (0, 0)))(i))
    return k.Model(i, L.Dense(2)(L.Subtract()([left, L.Activation("tanh")(right)])))


def pair_inside(k, L):
    """A network of two inputs and two outputs inside one, called both ways round."""
    a, b = L.Input((5,), name="left"), L.Input((5,), name="right")
    h = L.Dense(4, activation="tanh", name="halves")(L.Concatenate()([a, b]))
    inner = k.Model([a, b], [L.Dense(3)(h), L.Dense(2)(a)], name="pair")
    x, y = L.Input((5,), name="x"), L.Input((5,), name="y")
    u, v = inner([x, y]), inner([y, x])
    return k.Model([x, y], L.Dense(2)(L.Concatenate()([u[0], v[0], v[1], u[1]])))


def two_kinds(k, L):
    """Networks of both classes inside one, all of the same shapes."""
    i = x = L.Input((5,))
    for name in ("one", "two"):
        x = k.Sequential([L.Input((5,)), L.Dense(5, activation="tanh")], name=f"{name}_sequential")(x)
        inner = L.Input((5,))
        x = k.Model(inner, L.Dense(5, activation="tanh")(inner), name=f"{name}_functional")(x)
    return k.Model(i, x)


def encoder_twice(k, L):
    """Both outputs are calls of one network inside, in the other order than they were made."""
    inner = L.Input((5,))
    encoder = k.Model(inner, L.Dense(4, activation="tanh")(inner), name="encoder")
    a, b = L.Input((5,)), L.Input((5,))
    first, second = encoder(a), encoder(b)
    return k.Model([a, b], [second, first])


def states(k, L):
    """An encoder whose states begin a decoder."""
    a, b = L.Input((5, 3)), L.Input((4, 2))
    _, h, c = L.LSTM(4, return_state=True)(a)
    return k.Model([a, b], L.LSTM(4)(b, initial_state=[h, c]))


def residual(k, L):
    i = L.Input((8, 8, 4))
    x = L.Conv2D(4, 3, padding="same", use_bias=False)(i)
    x = L.BatchNormalization(momentum=0.9, epsilon=1e-5)(x)
    x = L.ReLU()(x) if hasattr(L, "ReLU") else L.Activation("relu")(x)
    x = L.Add()([x, i])
    x = L.Flatten()(L.AveragePooling2D(2)(x))
    return k.Model(i, L.Dense(5, activation="softmax")(L.Dropout(0.5)(x)))


def attention(k, L):
    q, v = L.Input((4, 6)), L.Input((5, 3))
    x = L.MultiHeadAttention(2, 3, value_dim=4)(q, v)
    return k.Model([q, v], L.MultiHeadAttention(3, 2, use_bias=False, dropout=0.1)(x, x, use_causal_mask=True))


def transformer_block(k, L):
    i = L.Input((6,), dtype="int32")
    x = L.Embedding(11, 8)(i)
    x = L.LayerNormalization(epsilon=1e-6)(L.Add()([x, L.MultiHeadAttention(2, 4)(x, x)]))
    x = L.LayerNormalization()(L.Add()([x, L.Dense(8)(L.Dense(16, activation="gelu")(x))]))
    return k.Model(i, L.Dense(3, activation="softmax")(L.GlobalAveragePooling1D()(x)))


def attention_masked(k, L):
    i, j = L.Input((6,), dtype="int32"), L.Input((5,), dtype="int32")
    e = L.Embedding(11, 8, mask_zero=True)
    return k.Model([i, j], L.LSTM(3)(L.MultiHeadAttention(2, 4)(e(i), e(j))))


def dots(k, L):
    a, b, c = L.Input((4, 6)), L.Input((5, 6)), L.Input((6,))
    return k.Model([a, b, c], [L.Dot(axes=2)([a, b]), L.Dot(axes=(2, 1), normalize=True)([a, c]), L.Dot(axes=1, normalize=True)([c, c]),
                               L.Dot(axes=(1, 2))([L.Permute((2, 1))(a), b])])


def both_ways_states(k, L):
    i = L.Input((5, 3))
    y, fh, fc, bh, bc = L.Bidirectional(L.LSTM(2, return_sequences=True, return_state=True), merge_mode="sum")(i)
    return k.Model(i, [y, L.Concatenate()([fh, fc, bh, bc])])


def encoder_in_time(k, L):
    inner_in = L.Input((4, 4, 2))
    inner = k.Model(inner_in, L.Flatten()(L.Conv2D(3, 3)(inner_in)), name="frames")
    i = L.Input((3, 4, 4, 2))
    return k.Model(i, L.GRU(2)(L.TimeDistributed(inner)(i)))


def stateful(k, L):
    """Layers that go on where the batch before ended, with a batch that is known."""
    i = L.Input((5, 2), batch_size=ROWS)
    x = L.LSTM(4, stateful=True, return_sequences=True)(i)
    return k.Model(i, L.SimpleRNN(2, stateful=True)(L.GRU(3, stateful=True, return_sequences=True)(x)))


MODELS = {
    "dense": one((5,), lambda L: L.Dense(4, activation="relu")),
    "dense_time": one((3, 5), lambda L: L.Dense(4, activation="sigmoid", use_bias=False)),
    "conv2d_valid": one((7, 6, 3), lambda L: L.Conv2D(4, (3, 2), strides=2, activation="elu")),
    "conv2d_same": one((7, 6, 3), lambda L: L.Conv2D(4, 3, strides=2, padding="same")),
    "conv2d_dilated": one((9, 9, 2), lambda L: L.Conv2D(3, 3, dilation_rate=2)),
    "conv2d_groups": one((5, 5, 4), lambda L: L.Conv2D(6, 3, groups=2)),
    "conv1d": one((9, 3), lambda L: L.Conv1D(4, 3, strides=2, activation="tanh")),
    "conv1d_causal": one((9, 3), lambda L: L.Conv1D(4, 3, padding="causal", dilation_rate=2)),
    "conv2d_transpose_valid": one((4, 5, 3), lambda L: L.Conv2DTranspose(2, 3, strides=2)),
    "conv2d_transpose_same": one((4, 5, 3), lambda L: L.Conv2DTranspose(2, 3, strides=2, padding="same")),
    "depthwise": one((6, 6, 3), lambda L: L.DepthwiseConv2D(3, depth_multiplier=2)),
    "separable": one((6, 6, 3), lambda L: L.SeparableConv2D(4, 3, depth_multiplier=2, activation="relu")),
    "max_pooling2d": one((7, 7, 2), lambda L: L.MaxPooling2D((2, 3), strides=2, padding="same")),
    "average_pooling2d": one((7, 7, 2), lambda L: L.AveragePooling2D(3, padding="same")),
    "pooling1d": sequential(lambda k, L: L.Input((9, 2)), lambda k, L: L.MaxPooling1D(2), lambda k, L: L.AveragePooling1D(2, strides=1)),
    "global_max": one((5, 4, 3), lambda L: L.GlobalMaxPooling2D()),
    "global_average1d": one((5, 3), lambda L: L.GlobalAveragePooling1D()),
    "batch_norm": one((4, 4, 3), lambda L: L.BatchNormalization()),
    "batch_norm_plain": one((6,), lambda L: L.BatchNormalization(center=False, scale=False, epsilon=0.01)),
    "layer_norm": one((4, 6), lambda L: L.LayerNormalization()),
    "embedding": one((7,), lambda L: L.Embedding(11, 4), "int32"),
    "padding_cropping": sequential(lambda k, L: L.Input((6, 6, 2)), lambda k, L: L.ZeroPadding2D(((1, 2), (0, 3))),
                                   lambda k, L: L.Cropping2D(((2, 0), (1, 1)))),
    "shapes": sequential(lambda k, L: L.Input((2, 3, 4)), lambda k, L: L.Permute((3, 1, 2)), lambda k, L: L.Reshape((4, -1)),
                         lambda k, L: L.Flatten(), lambda k, L: L.RepeatVector(3)),
    "activations": sequential(lambda k, L: L.Input((5,)), lambda k, L: L.Activation("softplus"), lambda k, L: L.Activation("softsign"),
                              lambda k, L: L.Activation("selu"), lambda k, L: L.Activation("exponential"), lambda k, L: L.Activation("gelu"),
                              lambda k, L: L.Activation("swish"), lambda k, L: L.Activation("hard_sigmoid"), lambda k, L: L.Activation("softmax")),
    "lstm": one((6, 3), lambda L: L.LSTM(4)),
    "lstm_sequences": one((6, 3), lambda L: L.LSTM(4, return_sequences=True, go_backwards=True, unit_forget_bias=False)),
    "lstm_no_bias": one((5, 3), lambda L: L.LSTM(3, use_bias=False, activation="relu", recurrent_activation="hard_sigmoid")),
    "lstm_states": states,
    "lstm_masked": sequential(lambda k, L: L.Input((8,), dtype="int32"), lambda k, L: L.Embedding(11, 5, mask_zero=True),
                              lambda k, L: L.LSTM(4, return_sequences=True), lambda k, L: L.Dropout(0.3), lambda k, L: L.GRU(3)),
    "gru": one((6, 3), lambda L: L.GRU(4)),
    "gru_reset_before": one((6, 3), lambda L: L.GRU(4, reset_after=False, return_sequences=True)),
    "simple_rnn": one((6, 3), lambda L: L.SimpleRNN(4, return_sequences=True)),
    "masking": sequential(lambda k, L: L.Input((5, 2)), lambda k, L: L.Masking(0.0), lambda k, L: L.SimpleRNN(4)),
    "siamese": siamese,
    "nested": nested,
    "residual": residual,
    "relus": sequential(lambda k, L: L.Input((7,)), lambda k, L: L.ReLU(max_value=1.5, negative_slope=0.1, threshold=0.2), lambda k, L: L.LeakyReLU(0.2),
                        lambda k, L: L.ELU(0.7), lambda k, L: L.PReLU(), lambda k, L: L.ReLU(6.0)),
    "prelu_shared": one((4, 4, 3), lambda L: L.PReLU(shared_axes=[1, 2])),
    "softmax_axis": one((4, 5), lambda L: L.Softmax(axis=1)),
    "upsampling": sequential(lambda k, L: L.Input((3, 4, 2)), lambda k, L: L.UpSampling2D((2, 3)), lambda k, L: L.UpSampling2D(2, interpolation="bilinear")),
    "sequences": sequential(lambda k, L: L.Input((6, 2)), lambda k, L: L.UpSampling1D(2), lambda k, L: L.SpatialDropout1D(0.5), lambda k, L: L.ZeroPadding1D((0, 3)),
                            lambda k, L: L.Cropping1D((2, 1))),
    "spatial_dropout2d": sequential(lambda k, L: L.Input((4, 4, 2)), lambda k, L: L.SpatialDropout2D(0.5), lambda k, L: L.Conv2D(2, 3)),
    "dots": dots,
    "time_distributed": one((4, 5), lambda L: L.TimeDistributed(L.Dense(3, activation="tanh"))),
    "encoder_in_time": encoder_in_time,
    "bidirectional": one((6, 3), lambda L: L.Bidirectional(L.LSTM(4))),
    "bidirectional_sequences": one((6, 3), lambda L: L.Bidirectional(L.GRU(4, return_sequences=True), merge_mode="ave")),
    "bidirectional_two": one((6, 3), lambda L: L.Bidirectional(L.SimpleRNN(4), merge_mode=None)),
    "bidirectional_own": one((6, 3), lambda L: L.Bidirectional(L.LSTM(4), backward_layer=L.LSTM(3, go_backwards=True, activation="relu"))),
    "bidirectional_masked": sequential(lambda k, L: L.Input((8,), dtype="int32"), lambda k, L: L.Embedding(11, 5, mask_zero=True),
                                       lambda k, L: L.Bidirectional(L.LSTM(4, return_sequences=True), merge_mode="mul"), lambda k, L: L.Bidirectional(L.GRU(2))),
    "bidirectional_states": both_ways_states,
    "attention": attention,
    "attention_masked": attention_masked,
    "transformer_block": transformer_block,
    "cudnn_lstm": one((6, 3), lambda L: L.LSTM(4)),
    "cudnn_gru": one((6, 3), lambda L: L.GRU(4, return_sequences=True)),
    "cudnn_both_ways": one((6, 3), lambda L: L.Bidirectional(L.LSTM(4, return_sequences=True))),
    "stateful": stateful,
    "noises": sequential(lambda k, L: L.Input((5,)), lambda k, L: L.GaussianNoise(0.3), lambda k, L: L.GaussianDropout(0.2), lambda k, L: L.AlphaDropout(0.4),
                         lambda k, L: L.ActivityRegularization(l1=0.1, l2=0.2), lambda k, L: L.UnitNormalization()),
    "unit_norm_axis": one((4, 5), lambda L: L.UnitNormalization(axis=1)),
    "separable_conv1d": one((9, 3), lambda L: L.SeparableConv1D(4, 3, strides=2, padding="same", depth_multiplier=2, activation="tanh")),
    "separable_conv1d_causal": one((9, 3), lambda L: L.SeparableConv1D(4, 3, padding="causal", dilation_rate=2)),
    "two_kinds": two_kinds,
    "encoder_twice": encoder_twice,
    "pair_inside": pair_inside,
}


def safetensors(path, tensors):
    head, at, body = {}, 0, b""
    names = {np.dtype("float32"): "F32", np.dtype("int32"): "I32"}
    for name, x in tensors.items():
        data = np.ascontiguousarray(x).tobytes()
        head[name] = {"dtype": names[x.dtype], "shape": list(x.shape), "data_offsets": [at, at + len(data)]}
        at += len(data)
        body += data
    text = json.dumps(head).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + body)


def random_weights(model, rng):
    """Glorot-like sizes, so that activations neither vanish nor saturate; variances stay positive."""
    out = []
    for w in model.weights:
        x = rng.standard_normal(tuple(w.shape)).astype("float32") * 0.4
        name = getattr(w, "path", w.name)
        out.append(np.abs(x) + 0.5 if "variance" in name else x)
    model.set_weights(out)


def as_cudnn(path, model):
    """The file as if its layers were CuDNNLSTM and CuDNNGRU, whose layout Keras's own conversion knows."""
    layer = model.layers[-1]
    made = {"LSTM": type("CuDNNLSTM", (), {})(), "GRU": type("CuDNNGRU", (), {})()}
    lost = {"activation", "recurrent_activation", "use_bias", "implementation", "dropout", "recurrent_dropout", "unroll", "time_major", "reset_after"}

    def renamed(o):
        if isinstance(o, list):
            return [renamed(x) for x in o]
        if not isinstance(o, dict):
            return o
        cudnn = o.get("class_name") in made
        out = {key: renamed(x) for key, x in o.items() if not (key in lost and "units" in o)}
        return {**out, "class_name": "CuDNN" + o["class_name"]} if cudnn else out

    with h5py.File(path, "r+") as f:
        f.attrs["model_config"] = json.dumps(renamed(json.loads(f.attrs["model_config"])))
        group = f["model_weights"][layer.name]
        names = list(group.attrs["weight_names"])
        kind = made["GRU" if isinstance(layer, keras2.layers.GRU) else "LSTM"]
        for i in range(0, len(names), 3):
            values = hdf5_format._convert_rnn_weights(kind, [group[name][()] for name in names[i:i + 3]])
            for name, value in zip(names[i:i + 3], values):
                del group[name]
                group[name] = value


ARCHIVES = ("dense", "conv2d_same", "batch_norm", "embedding", "lstm", "gru", "bidirectional_own", "siamese", "nested", "residual", "encoder_in_time",
            "attention", "transformer_block", "separable", "lstm_masked", "prelu_shared", "two_kinds", "encoder_twice", "pair_inside")
# Models whose groups are of every kind: for writers that name them in ways of their own.
GROUPS = ("lstm_masked", "bidirectional_own", "siamese", "nested", "encoder_in_time", "attention", "two_kinds")


def join_on_windows(first, *rest):
    """Of what is in the archive; the files that it is made of are where they are."""
    return (os.path if first.startswith("/") else ntpath).join(first, *rest)


def resave(k, flavour, name, out):
    k.backend.clear_session()
    k.models.load_model(OUT / f"{flavour}-{name}.h5", compile=False).save(OUT / f"{out}-{name}.keras")


def archives(wanted):
    """The same models as .keras archives."""
    for name in wanted or ARCHIVES:
        resave(keras3, "keras3", name, "keras3")
    for name in wanted or [x for x in MODELS if not x.startswith("cudnn")]:
        resave(keras2, "keras2", name, "keras2")
    saving_lib.tf.io.gfile.join = join_on_windows
    for name in wanted or GROUPS:
        resave(keras2, "keras2", name, "keras2windows")
        shutil.copy(OUT / f"keras2-{name}.safetensors", OUT / f"keras2windows-{name}.safetensors")


def old_archives():
    """Of Keras 2.14, whose groups have other names; and one of 2.13, which nobody else reads."""
    if keras3.__version__.startswith("2.13"):
        siamese(keras3, keras3.layers).save(OUT.parent / "keras_bad" / "keras213.keras")
        return
    for number, name in enumerate(GROUPS):
        keras3.backend.clear_session()
        rng = np.random.default_rng(200 + number)
        model = MODELS[name](keras3, keras3.layers)
        random_weights(model, rng)
        model.save(OUT / f"keras214-{name}.keras")
        save_values(OUT / f"keras214-{name}.safetensors", model, name, rng)


def save_values(path, model, name, rng):
    """Inputs, and what the model makes of them."""
    ins = []
    for x in model.inputs:
        shape = (ROWS,) + tuple(x.shape)[1:]
        integer = str(getattr(x.dtype, "name", x.dtype)) == "int32"
        ins.append(rng.integers(0, 11, shape).astype("int32") if integer else rng.standard_normal(shape).astype("float32"))
    outs = model.predict(ins if len(ins) > 1 else ins[0], verbose=0)
    outs = outs if isinstance(outs, (list, tuple)) else [outs]
    again = [model.predict(ins[0], verbose=0)] if name == "stateful" else []
    safetensors(path, {**{f"in{i}": x for i, x in enumerate(ins)}, **{f"out{i}": x for i, x in enumerate(outs)},
                       **{f"again{i}": x for i, x in enumerate(again)}})


def main():
    if sys.argv[1:2] == ["archives"]:
        archives(sys.argv[2:]) if keras3.__version__.startswith("3") else old_archives()
        return
    wanted = set(sys.argv[1:]) or set(MODELS)
    OUT.mkdir(exist_ok=True)
    for flavour, k in (("keras2", keras2), ("keras3", keras3)):
        for number, (name, build) in enumerate(MODELS.items()):
            if name not in wanted or (flavour == "keras3" and name in KERAS2_ONLY):
                continue
            rng = np.random.default_rng(100 + number)
            k.backend.clear_session()
            model = build(k, k.layers)
            random_weights(model, rng)
            stem = OUT / f"{flavour}-{name}"
            model.save(f"{stem}.h5")
            if name.startswith("cudnn"):
                as_cudnn(f"{stem}.h5", model)
            save_values(stem.with_suffix(".safetensors"), model, name, rng)


if __name__ == "__main__":
    main()
