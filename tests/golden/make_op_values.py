#!/usr/bin/env python3
"""Write op_values.txt: what TensorFlow computes for small inputs of the neural-network operations.

Forward values come from TensorFlow's own operations, gradients from its tape with a random cotangent, both in
float64 where the operation has it. Where a CPU kernel is missing there (groups, dilated gradients) the same thing
is built from operations that exist: one convolution a group, a filter with zeros put between its taps.

    python3 -m venv venv && venv/bin/pip install tensorflow-cpu numpy && venv/bin/python make_op_values.py > op_values.txt

Format, one item a line, values in row-major order:
    case <name> <operation>
    attr <field> <numbers>
    in <dtype> <rank> <dims> : <values>        an input; no values for a shape-only one
    out <index> <rank> <dims> : <values>       an output to compare
    end
"""
import sys

import numpy as np
import tensorflow as tf

RNG = np.random.default_rng(20240607)
SAME, VALID, EXPLICIT = 0, 1, 2


def rand(*shape, lo=-1.0, hi=1.0):
    return np.round(RNG.uniform(lo, hi, shape), 4)


def line(kind, a, dtype=None, values=True):
    a = np.asarray(a)
    dims = " ".join(str(d) for d in a.shape)
    text = "" if not values else " ".join("%.10g" % v for v in a.reshape(-1))
    print(" ".join(str(p) for p in [kind, dtype if dtype else "", a.ndim, dims, ":", text] if p != ""))


class Like:
    """An input of which only the shape is given."""
    def __init__(self, a):
        self.a = np.asarray(a)


def case(name, op, attrs, ins, outs, dtypes=None):
    print("case %s %s" % (name, op))
    for k, v in attrs.items():
        print("attr %s %s" % (k, " ".join("%.17g" % x for x in np.atleast_1d(v))))
    for i, a in enumerate(ins):
        t = dtypes[i] if dtypes else "f64"
        if isinstance(a, Like):
            line("in", a.a, t, values=False)
        else:
            line("in", a, t)
    for i, a in enumerate(outs):
        if a is not None:
            line("out %d" % i, a)
    print("end")


def tape(fn, dy, *xs):
    """Value of fn(*xs), and the gradients of sum(dy * value)."""
    vs = [tf.constant(x) for x in xs]
    with tf.GradientTape() as t:
        for v in vs:
            t.watch(v)
        y = fn(*vs)
        s = tf.reduce_sum(y * tf.constant(dy(y.shape) if callable(dy) else dy, dtype=y.dtype))
    return y.numpy(), [g.numpy() for g in t.gradient(s, vs)]


# ---- convolution ---------------------------------------------------------------------------------------------

def spread_taps(w, dilation):
    """The filter with dilation-1 zeros between its taps."""
    dh, dw = dilation
    h, ww, i, o = w.shape
    rows = tf.stack([w] + [tf.zeros_like(w)] * (dh - 1), axis=1) if dh > 1 else w[:, None]
    w = tf.reshape(rows, (h * dh, ww, i, o))[: (h - 1) * dh + 1]
    cols = tf.stack([w] + [tf.zeros_like(w)] * (dw - 1), axis=2) if dw > 1 else w[:, :, None]
    return tf.reshape(cols, (w.shape[0], ww * dw, i, o))[:, : (ww - 1) * dw + 1]


def conv(stride=(1, 1), dilation=(1, 1), groups=1, padding=SAME, pad=(0, 0, 0, 0)):
    pads = {SAME: "SAME", VALID: "VALID", EXPLICIT: [[0, 0], list(pad[:2]), list(pad[2:]), [0, 0]]}[padding]

    def fn(x, w):
        xs, ws = tf.split(x, groups, axis=3), tf.split(spread_taps(w, dilation), groups, axis=3)
        return tf.concat([tf.nn.conv2d(a, b, [1, *stride, 1], pads) for a, b in zip(xs, ws)], axis=3)
    return fn


def conv_cases():
    configs = {
        "same": ({}, (2, 4, 5, 3), (3, 3, 3, 4)),
        "even_window": ({}, (1, 5, 4, 1), (2, 4, 1, 3)),
        "valid": (dict(padding=VALID), (1, 5, 6, 2), (3, 2, 2, 3)),
        "stride2": (dict(stride=(2, 2)), (1, 5, 6, 2), (3, 3, 2, 3)),
        "stride3_valid": (dict(stride=(3, 2), padding=VALID), (1, 8, 7, 2), (3, 3, 2, 2)),
        "stride_over_window": (dict(stride=(3, 3)), (1, 7, 8, 2), (1, 2, 2, 2)),
        "dilated": (dict(dilation=(2, 3)), (1, 7, 8, 2), (3, 3, 2, 2)),
        "dilated_valid": (dict(dilation=(2, 2), padding=VALID), (1, 7, 6, 1), (3, 2, 1, 2)),
        "groups": (dict(groups=2), (1, 4, 4, 4), (3, 3, 2, 6)),
        "explicit": (dict(padding=EXPLICIT, pad=(1, 0, 0, 2), stride=(2, 1)), (1, 5, 4, 2), (3, 3, 2, 3)),
    }
    for name, (attrs, xs, ws) in configs.items():
        x, w = rand(*xs), rand(*ws)
        y = conv(**attrs)(tf.constant(x), tf.constant(w)).numpy()
        dy = rand(*y.shape)
        y, (dx, dw) = tape(conv(**attrs), dy, x, w)
        case("conv_" + name, "conv2d", attrs, [x, w], [y])
        case("conv_dx_" + name, "conv2d_grad_input", attrs, [dy, w, Like(x)], [dx])
        case("conv_dw_" + name, "conv2d_grad_filter", attrs, [x, dy, Like(w)], [dw])
        if name in ("same", "stride2"):
            case("conv_dw_db_" + name, "conv2d_grad_filter_bias", attrs, [x, dy, Like(w)], [dw, dy.sum((0, 1, 2))])
    x, w = rand(1, 4, 5, 3), rand(3, 3, 3, 2)
    y = tf.nn.depthwise_conv2d(tf.constant(x), tf.constant(w), [1, 1, 1, 1], "SAME").numpy()
    case("conv_depthwise", "conv2d", dict(groups=3), [x, w.reshape(3, 3, 1, 6)], [y])
    x, w, b = rand(1, 4, 4, 2), rand(3, 3, 2, 3), rand(3)
    z = tf.nn.bias_add(tf.nn.conv2d(tf.constant(x), tf.constant(w), 1, "SAME"), tf.constant(b))
    for act, f in {1: tf.nn.relu, 6: tf.nn.gelu, 9: tf.nn.sigmoid}.items():
        case("conv_bias_act_%d" % act, "conv2d_bias_act", dict(act=act), [x, w, b], [f(z).numpy()])


def transpose_cases():
    for name, attrs, xs, ws, out in [
        ("same2", dict(stride=(2, 2), padding=SAME), (1, 3, 4, 3), (3, 3, 2, 3), (6, 8)),
        ("valid", dict(stride=(2, 3), padding=VALID), (1, 3, 2, 3), (3, 4, 2, 3), (7, 7)),
        ("given", dict(stride=(2, 2), padding=SAME, out=(5, 7)), (2, 3, 4, 2), (3, 3, 1, 2), (5, 7)),
    ]:
        x, w = rand(*xs), rand(*ws)
        y = tf.nn.conv2d_transpose(tf.constant(x), tf.constant(w), (xs[0], *out, ws[2]), [1, *attrs["stride"], 1],
                                   "SAME" if attrs["padding"] == SAME else "VALID").numpy()
        case("transpose_" + name, "conv2d_transpose", attrs, [x, w], [y])


# ---- pooling ------------------------------------------------------------------------------------------------------

def pool_cases():
    for name, attrs, shape in [
        ("3x3_s2_same", dict(window=(3, 3), stride=(2, 2), padding=SAME), (2, 5, 6, 2)),
        ("3x3_s2_even", dict(window=(3, 3), stride=(2, 2), padding=SAME), (1, 6, 6, 2)),
        ("2x2", dict(window=(2, 2), stride=(2, 2), padding=VALID), (1, 5, 4, 3)),
        ("3x2_s1", dict(window=(3, 2), stride=(1, 1), padding=VALID), (1, 5, 4, 2)),
        ("2x3_s3", dict(window=(2, 3), stride=(3, 1), padding=SAME), (1, 8, 5, 1)),
    ]:
        x = rand(*shape).astype(np.float32)
        k, s, p = attrs["window"], attrs["stride"], "SAME" if attrs["padding"] == SAME else "VALID"
        y, at = tf.nn.max_pool_with_argmax(x, k, s, p)
        n, oh, ow, c = y.shape
        at = at.numpy() // c                                  # row * W + column
        before = [0, 0]
        if attrs["padding"] == SAME:
            before = [max((o - 1) * st + kk - d, 0) // 2 for o, st, kk, d in zip((oh, ow), s, k, shape[1:3])]
        rows = np.arange(oh)[None, :, None, None] * s[0] - before[0]
        cols = np.arange(ow)[None, None, :, None] * s[1] - before[1]
        index = (at // shape[2] - rows) * k[1] + at % shape[2] - cols
        dy = rand(*y.shape).astype(np.float32)
        y, (dx,) = tape(lambda v: tf.nn.max_pool2d(v, k, s, p), dy, x)
        case("max_pool_" + name, "max_pool", attrs, [x], [y, index])
        case("max_pool_dx_" + name, "max_pool_grad", attrs, [dy, index, Like(x)], [dx], ["f64", "u8", "f64"])
        y, (dx,) = tape(lambda v: tf.nn.avg_pool2d(v, k, s, p), dy, x)
        case("avg_pool_" + name, "avg_pool", attrs, [x], [y])
        case("avg_pool_dx_" + name, "avg_pool_grad", attrs, [dy, Like(x)], [dx])


# ---- normalisation ------------------------------------------------------------------------------------------------

def lrn_cases():
    for name, a, shape in [
        ("tutorial", dict(radius=4, bias=1.0, alpha=0.001 / 9, beta=0.75), (1, 2, 2, 16)),
        ("alexnet", dict(radius=2, bias=2.0, alpha=1e-4, beta=0.75), (1, 2, 2, 7)),
        ("defaults", dict(radius=5, bias=1.0, alpha=1.0, beta=0.5), (1, 2, 1, 8)),
        ("over_channels", dict(radius=4, bias=1.0, alpha=0.3, beta=0.75), (1, 1, 3, 3)),
    ]:
        x = (rand(*shape) * (20 if name == "tutorial" else 1)).astype(np.float32)
        dy = rand(*shape).astype(np.float32)
        y, (dx,) = tape(lambda v: tf.nn.lrn(v, a["radius"], a["bias"], a["alpha"], a["beta"]), dy, x)
        attrs = {} if name == "defaults" else a
        case("lrn_" + name, "lrn", attrs, [x], [y])
        case("lrn_dx_" + name, "lrn_grad", attrs, [dy, x], [dx])


def norm_cases():
    for name, eps, shape, act in [("rows", 1e-3, (6, 3), 0), ("picture", 1e-2, (2, 2, 3, 2), 0), ("relu", 1e-3, (2, 3, 2, 2), 1)]:
        c = shape[-1]
        x, gamma, beta, dy = rand(*shape), rand(c, lo=0.5, hi=1.5), rand(c), rand(*shape)
        axes = list(range(len(shape) - 1))
        mean, var = [v.numpy() for v in tf.nn.moments(tf.constant(x), axes)]

        def fn(v, g, b):
            m, s = tf.nn.moments(v, axes)
            y = tf.nn.batch_normalization(v, m, s, b, g, eps)
            return tf.nn.relu(y) if act else y
        y, (dx, dg, db) = tape(fn, dy, x, gamma, beta)
        attrs = dict(epsilon=eps, act=act)
        case("batch_norm_" + name, "batch_norm_train", attrs, [x, gamma, beta], [y, mean, var])
        case("batch_norm_grad_" + name, "batch_norm_grad", attrs, [dy, x, gamma, mean, var, y], [dx, dg, db])
    # TensorFlow's own fused operation, as a check of the formula above
    x, gamma, beta = [a.astype(np.float32) for a in (rand(2, 3, 3, 2), rand(2, lo=0.5, hi=1.5), rand(2))]
    y, mean, var = tf.compat.v1.nn.fused_batch_norm(x, gamma, beta, epsilon=1e-3, is_training=True)
    n = x.size // 2
    case("batch_norm_fused", "batch_norm_train", {}, [x, gamma, beta], [y.numpy(), mean.numpy(), var.numpy() * (n - 1) / n])
    x, gamma, beta, mean, var, dy = rand(4, 3), rand(3), rand(3), rand(3), rand(3, lo=0.2, hi=2), rand(4, 3)
    y, (dx, dg, db) = tape(lambda v, g, b: tf.nn.batch_normalization(v, mean, var, b, g, 1e-3), dy, x, gamma, beta)
    case("batch_norm_infer", "batch_norm_infer", {}, [x, gamma, beta, mean, var], [y])
    case("batch_norm_infer_grad", "batch_norm_infer_grad", {}, [dy, x, gamma, mean, var], [dx, dg, db])
    for name, eps, shape in [("rows", 1e-3, (4, 5)), ("pictures", 1e-5, (2, 2, 2, 3))]:
        c = shape[-1]
        x, gamma, beta, dy = rand(*shape), rand(c), rand(c), rand(*shape)
        layer = tf.keras.layers.LayerNormalization(epsilon=eps, dtype="float64")
        layer.build(shape)

        def fn(v, g, b):
            m, s = tf.nn.moments(v, [-1], keepdims=True)
            return tf.nn.batch_normalization(v, m, s, b, g, eps)
        layer.gamma.assign(gamma)
        layer.beta.assign(beta)
        y, (dx, dg, db) = tape(fn, dy, x, gamma, beta)
        assert np.allclose(layer(x).numpy(), y, atol=1e-6)
        mean, rstd = x.mean(-1), 1 / np.sqrt(x.var(-1) + eps)
        case("layer_norm_" + name, "layer_norm", dict(epsilon=eps), [x, gamma, beta], [y, mean, rstd])
        case("layer_norm_grad_" + name, "layer_norm_grad", dict(epsilon=eps), [dy, x, gamma, mean, rstd], [dx, dg, db])


# ---- products, losses, activations -----------------------------------------------------------------------------------

def matmul_cases():
    for name, ta, tb, sa, sb in [("plain", 0, 0, (3, 4), (4, 2)), ("ta", 1, 0, (4, 3), (4, 2)), ("tb", 0, 1, (3, 4), (2, 4)),
                                 ("tab", 1, 1, (4, 3), (2, 4)), ("batch", 0, 0, (2, 3, 4), (2, 4, 2)),
                                 ("broadcast", 0, 1, (2, 1, 3, 4), (2, 2, 4))]:
        a, b = rand(*sa), rand(*sb)
        y = tf.matmul(tf.constant(a), tf.constant(b), bool(ta), bool(tb)).numpy()
        case("matmul_" + name, "matmul", dict(transpose_a=ta, transpose_b=tb), [a, b], [y])
    a, b, bias = rand(3, 4), rand(4, 2), rand(2)
    z = tf.constant(a @ b + bias)
    for act, f in {1: tf.nn.relu, 2: tf.nn.relu6, 4: tf.nn.elu, 5: tf.nn.selu, 6: tf.nn.gelu, 7: tf.nn.silu, 8: tf.nn.tanh,
                   9: tf.nn.sigmoid, 10: tf.nn.softplus}.items():
        case("matmul_bias_act_%d" % act, "matmul_bias_act", dict(act=act), [a, b, bias], [f(z).numpy()])
    case("matmul_bias_leaky", "matmul_bias_act", dict(act=3, alpha=0.1), [a, b, bias], [tf.nn.leaky_relu(z, 0.1).numpy()])
    x, dy = rand(5, 3), rand(5, 2)
    case("matmul_grad_bias", "matmul_grad_bias", dict(transpose_a=1), [x, dy], [x.T @ dy, dy.sum(0)])
    case("bias_add", "bias_add", {}, [x, rand(3) * 0 + 0.5], [x + 0.5])
    case("bias_add_grad", "bias_add_grad", {}, [dy], [dy.sum(0)])


def loss_cases():
    x, dy = rand(3, 5, lo=-3, hi=3), rand(3, 5)
    s, (dx,) = tape(tf.nn.softmax, dy, x)
    case("softmax", "softmax", {}, [x], [s])
    case("softmax_grad", "softmax_grad", {}, [dy, s], [dx])
    l, (dx,) = tape(tf.nn.log_softmax, dy, x)
    case("log_softmax", "log_softmax", {}, [x], [l])
    case("log_softmax_grad", "log_softmax_grad", {}, [dy, l], [dx])
    labels = rand(3, 5, lo=0.1, hi=1)
    labels = np.round(labels / labels.sum(1, keepdims=True), 6)
    labels[:, 0] += 1 - labels.sum(1)
    loss, backprop = tf.raw_ops.SoftmaxCrossEntropyWithLogits(features=x, labels=labels)
    case("softmax_xent", "softmax_xent", {}, [x, labels], [loss.numpy(), backprop.numpy()])
    ids = np.array([4, 0, 2])
    loss, backprop = tf.raw_ops.SparseSoftmaxCrossEntropyWithLogits(features=x, labels=ids)
    case("sparse_softmax_xent", "sparse_softmax_xent", {}, [x, ids], [loss.numpy(), backprop.numpy()], ["f64", "i64"])
    z = rand(3, 5, lo=0, hi=1)
    case("sigmoid_xent", "sigmoid_xent", {}, [x, z], [tf.nn.sigmoid_cross_entropy_with_logits(z, x).numpy()])


def activation_cases():
    x, dy = rand(12, lo=-4, hi=8), rand(12)
    for name, f, attrs, of in [
        ("relu", tf.nn.relu, {}, "y"), ("relu6", tf.nn.relu6, {}, "y"), ("elu", tf.nn.elu, {}, "y"), ("selu", tf.nn.selu, {}, "y"),
        ("silu", tf.nn.silu, {}, "x"), ("tanh", tf.nn.tanh, {}, "y"), ("sigmoid", tf.nn.sigmoid, {}, "y"),
        ("softplus", tf.nn.softplus, {}, "x"), ("leaky_relu", tf.nn.leaky_relu, {}, "x"),
        ("gelu", lambda v: tf.nn.gelu(v, approximate=False), dict(approximate=0), "x"),
        ("gelu", lambda v: tf.nn.gelu(v, approximate=True), dict(approximate=1), "x"),
    ]:
        y, (dx,) = tape(f, dy, x)
        tag = "_tanh" if attrs.get("approximate") else ""
        case(name + tag, name, attrs, [x], [y])
        case(name + "_grad" + tag, name + "_grad", attrs, [dy, y if of == "y" else x], [dx])


# ---- recurrent layers ------------------------------------------------------------------------------------------------

def layer_run(kind, gates, z, r, states, mask, attrs, bias=None):
    """Keras's layer over z: with the identity as kernel, z is its input and the gradient of z that of its input."""
    units = r.shape[0]
    gate = {0: "sigmoid", 1: lambda v: tf.clip_by_value(0.2 * v + 0.5, 0, 1), 2: "hard_sigmoid"}[attrs.get("recurrent_activation", 0)]
    options = dict(activation=["tanh", "relu", "linear"][attrs.get("activation", 0)], return_sequences=True, return_state=True,
                   go_backwards=bool(attrs.get("go_backwards")), dtype="float64")
    if kind != "SimpleRNN":
        options["recurrent_activation"] = gate
    if kind == "GRU":
        options["reset_after"] = not attrs.get("reset_before")
    layer = getattr(tf.keras.layers, kind)(units, **options)
    layer.zero_output_for_mask = bool(attrs.get("zero_output"))
    layer.build(z.shape)
    if kind == "GRU" and options["reset_after"]:
        b = np.stack([np.zeros(gates * units), np.zeros(gates * units) if bias is None else bias])
    else:
        b = np.zeros(gates * units)
    layer.set_weights([np.eye(gates * units), r, b])
    return lambda v, *s: layer(v, initial_state=list(s), mask=None if mask is None else tf.constant(mask), training=False)


def with_gradients(fn, cotangents, xs):
    """All outputs of fn, and the gradients of the sum of their products with the cotangents."""
    vs = [tf.constant(x) for x in xs]
    with tf.GradientTape() as t:
        for v in vs:
            t.watch(v)
        ys = fn(*vs)
        s = tf.add_n([tf.reduce_sum(y * tf.constant(d)) for y, d in zip(ys, cotangents)])
    return [y.numpy() for y in ys], [g.numpy() for g in t.gradient(s, vs)]


def recurrent_cases():
    n, t, u = 3, 4, 2
    mask = np.array([[1, 1, 1, 1], [0, 1, 0, 1], [1, 0, 0, 0]], bool)
    for kind, gates, op in (("LSTM", 4, "lstm"), ("GRU", 3, "gru"), ("SimpleRNN", 1, "simple_rnn")):
        configs = {"plain": {}, "backwards": dict(go_backwards=1), "relu": dict(activation=1), "masked": {}, "zeros": dict(zero_output=1),
                   "masked_backwards": dict(go_backwards=1)}
        if kind != "SimpleRNN":
            configs.update(hard=dict(recurrent_activation=1), hard_6=dict(recurrent_activation=2))
        if kind == "GRU":
            configs.update(before=dict(reset_before=1), before_masked=dict(reset_before=1))
        for name, attrs in configs.items():
            m = mask if "masked" in name or name == "zeros" else None
            z, r = rand(n, t, gates * u), rand(u, gates * u)
            states = [rand(n, u) for _ in range(2 if kind == "LSTM" else 1)]
            bias = rand(3 * u) if kind == "GRU" and not attrs.get("reset_before") else None
            ys = layer_run(kind, gates, z, r, states, m, attrs, bias)(z, *states)
            ins, types = [z, r, *states], ["f64"] * (2 + len(states))
            ins.append(np.ones((n, t)) if m is None else m.astype(int))
            types.append("bool")
            if bias is not None:
                ins.append(bias)
                types.append("f64")
            case("%s_%s" % (op, name), op, attrs, ins, [y.numpy() for y in ys], types)
    recurrent_grads(n, t, u)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def kept(kind, z, r, states, bias):
    """The gates and states of the forward pass, without masks; the formulae of the papers."""
    (n, t, _), u, (h, *c) = z.shape, r.shape[0], states
    gates, after = [], []
    for k in range(t):
        q = h @ r + (0 if bias is None else bias)
        if kind == "LSTM":
            i, f, g, o = np.split(z[:, k] + q, 4, axis=1)
            i, f, g, o = sigmoid(i), sigmoid(f), np.tanh(g), sigmoid(o)
            c = [f * c[0] + i * g]
            h = o * np.tanh(c[0])
            gates.append(np.concatenate([i, f, g, o], 1))
            after.append(c[0])
            continue
        if kind == "GRU":
            up, reset = sigmoid(z[:, k, :u] + q[:, :u]), sigmoid(z[:, k, u:2 * u] + q[:, u:2 * u])
            new = np.tanh(z[:, k, 2 * u:] + reset * q[:, 2 * u:])
            h = up * h + (1 - up) * new
            gates.append(np.concatenate([up, reset, new, q[:, 2 * u:]], 1))
        else:
            h = np.tanh(z[:, k] + q)
        after.append(h)
    return (np.stack(gates, 1) if gates else None), np.stack(after, 1)


def recurrent_grads(n, t, u):
    for kind, gates, op in (("LSTM", 4, "lstm_grad"), ("GRU", 3, "gru_grad"), ("SimpleRNN", 1, "simple_rnn_grad")):
        z, r = rand(n, t, gates * u), rand(u, gates * u)
        states = [rand(n, u) for _ in range(2 if kind == "LSTM" else 1)]
        bias = rand(3 * u) if kind == "GRU" else None
        cotangents = [rand(n, t, u)] + [rand(n, u) for _ in states]
        ys, (dz, *ds) = with_gradients(layer_run(kind, gates, z, r, states, None, {}, bias), cotangents, [z, *states])
        gate, after = kept(kind, z, r, states, bias)
        before = np.concatenate([states[0][:, None], ys[0][:, :-1]], 1)
        ins = [after, r] if gate is None else [gate, r, after]
        outs = [dz, *ds, None, before] if kind == "GRU" else [dz, *ds, before]
        case(op, op, {}, [*ins, *cotangents, *states], outs)


# ---- pictures made larger, boxes ---------------------------------------------------------------------------------------

def resize_cases():
    for method in ("nearest", "bilinear"):
        for by in ((2, 2), (3, 2), (1, 4)):
            x = rand(2, 3, 4, 2).astype(np.float32)
            fn = tf.keras.layers.UpSampling2D(by, interpolation=method)
            dy = rand(2, 3 * by[0], 4 * by[1], 2).astype(np.float32)
            y, (dx,) = tape(fn, dy, x)
            tag = "resize_%s_%dx%d" % (method, *by)
            case(tag, "resize_" + method, dict(scale=by), [x], [y])
            case(tag + "_dx", "resize_%s_grad" % method, dict(scale=by), [dy], [dx])


def box_cases():
    corner, size = rand(12, 2, lo=0, hi=1), rand(12, 2, lo=0.2, hi=0.8)
    boxes, scores = np.concatenate([corner, corner + size], 1), rand(12, lo=0, hi=1)
    scores[7] = scores[3]
    for name, most, iou, least in (("usual", 12, 0.5, 0.0), ("few", 3, 0.5, 0.0), ("strict", 12, 0.1, 0.3), ("loose", 12, 0.9, -1.0)):
        at, count = tf.raw_ops.NonMaxSuppressionV4(boxes=boxes.astype(np.float32), scores=scores.astype(np.float32), max_output_size=most,
                                                   iou_threshold=iou, score_threshold=least, pad_to_max_output_size=True)
        at = np.where(np.arange(most) < count.numpy(), at.numpy(), -1)
        case("nms_" + name, "non_max_suppression", dict(max_outputs=most, iou_threshold=iou, score_threshold=least), [boxes, scores],
             [at, count.numpy()])


def roi_cases():
    """crop_and_resize puts its points on a grid from corner to corner; on the grid of all samples it is roi_align before the mean."""
    x = rand(3, 6, 7, 2).astype(np.float32)
    image = np.array([0, 2, 1, 2])
    corner, size = rand(4, 2, lo=0.5, hi=2.5), rand(4, 2, lo=1, hi=3)
    boxes = np.concatenate([corner, corner + size], 1)
    for name, cells, samples, scale in (("one", (2, 3), 1, 1.0), ("four", (3, 2), 2, 1.0), ("scaled", (2, 2), 3, 0.5)):
        grid = np.array(cells) * samples
        step = (boxes[:, 2:] - boxes[:, :2]) / grid
        first = boxes[:, :2] + step / 2 - 0.5
        ends = np.concatenate([first, first + step * (grid - 1)], 1) / np.array([5, 6, 5, 6])

        def fn(v):
            crops = tf.image.crop_and_resize(v, ends.astype(np.float32), image, grid)
            return tf.nn.avg_pool2d(crops, samples, samples, "VALID")
        dy = rand(4, *cells, 2).astype(np.float32)
        y, (dx,) = tape(fn, dy, x)
        attrs = dict(size=cells, samples=samples, aligned=1, scale=scale)
        case("roi_align_" + name, "roi_align", attrs, [x, boxes / scale, image], [y], ["f64", "f64", "i32"])
        case("roi_align_dx_" + name, "roi_align_grad", attrs, [dy, boxes / scale, image, Like(x)], [dx], ["f64", "f64", "i32", "f64"])


def reverse_cases():
    x = rand(2, 3, 4)
    for axis in (0, 1, -1):
        case("reverse_%d" % axis, "reverse", dict(axis=axis), [x], [tf.reverse(x, [axis]).numpy()])


if __name__ == "__main__":
    print("# made by make_op_values.py with TensorFlow %s; do not edit" % tf.__version__)
    for part in (conv_cases, transpose_cases, pool_cases, lrn_cases, norm_cases, matmul_cases, loss_cases, activation_cases, recurrent_cases,
                 resize_cases, box_cases, reverse_cases, roi_cases):
        part()
    sys.stdout.flush()
