#!/usr/bin/env python3
"""Write model_values.txt: ten training steps of the built-in networks as TensorFlow computes them.

The networks are written down a second time here, from their definition and not from the C code, and run in float64:
the values are the truth that float32 implementations approach. Pictures, labels and initial weights come from an
integer hash that the test repeats exactly, so the file holds results only. "--float32" runs the same in float32; the
distance of the two outputs is the rounding noise that the test's tolerance has to leave room for.

    python3 -m venv venv && venv/bin/pip install tensorflow-cpu==2.21.0 numpy && venv/bin/python make_model_values.py > model_values.txt

Needs TensorFlow 2.x and NumPy 1.23 or newer (written with 2.21 and 2.4). Format, one item a line:
    model <name> <towers> <seed> <batch> <height> <width> <channels> <classes> <steps> <rate>
    var <name> <seed> <mean> <scale> <rank> <dims>       initial element i is f32(mean + scale * u(seed, i))
    loss <step> <value>                                  total loss before the update of that step
    <what> <step> <name> <largest> <sum> <sum of squares> <index>:<value> ...
                                                         what: grad, weight (after the step), moving, shadow
    end
"""
import sys

import numpy as np
import tensorflow as tf

DTYPE = tf.float32 if "--float32" in sys.argv[1:] else tf.float64
STEPS, CLASSES, SAMPLES = 10, 10, 3


def words(seed, n):
    """n words of 32 bits from a seed: a multiply and shift hash of the index."""
    h = (np.arange(n, dtype=np.uint64) * 2654435761 + seed * 40503 + 12345).astype(np.uint32)
    for shift, factor in ((15, 2246822519), (13, 3266489917)):
        h ^= h >> np.uint32(shift)
        h = (h.astype(np.uint64) * factor).astype(np.uint32)
    return h ^ (h >> np.uint32(16))


def uniform(seed, n):
    """Multiples of 2^-15 in [-1, 1)."""
    return (words(seed, n) >> np.uint32(16)).astype(np.float64) / 32768.0 - 1.0


class Net:
    """Variables by name, weight penalties, and the batch statistics of the last forward pass."""
    def __init__(self):
        self.vars, self.specs, self.decay, self.stats = {}, [], {}, {}

    def var(self, name, mean, scale, *shape, decay=0.0):
        if name not in self.vars:
            seed = len(self.specs) + 1
            start = np.float32(mean + scale * uniform(seed, int(np.prod(shape)))).reshape(shape)
            self.vars[name] = tf.Variable(start, dtype=DTYPE)
            self.specs.append("var %s %d %.17g %.17g %d %s" % (name, seed, mean, scale, len(shape), " ".join(map(str, shape))))
            if decay:
                self.decay[name] = decay
        return self.vars[name]

    def conv(self, name, x, filters, window, stride, deviation, bias=None, decay=0.0):
        scale = 3 ** 0.5 * (deviation or (2 / (window * window * x.shape[-1])) ** 0.5)
        y = tf.nn.conv2d(x, self.var(name + "/weights", 0, scale, window, window, x.shape[-1], filters, decay=decay), stride, "SAME")
        return y if bias is None else y + self.var(name + "/biases", bias, 0.02, filters)

    def dense(self, name, x, units, scale, bias, decay=0.0):
        return x @ self.var(name + "/weights", 0, scale, x.shape[-1], units, decay=decay) + self.var(name + "/biases", bias, 0.02, units)

    def norm(self, name, x):
        gamma, beta = self.var(name + "/gamma", 1, 0.1, x.shape[-1]), self.var(name + "/beta", 0, 0.1, x.shape[-1])
        mean, variance = tf.nn.moments(x, [0, 1, 2])
        self.stats.setdefault(name + "/moving_mean", []).append(mean)
        self.stats.setdefault(name + "/moving_variance", []).append(variance)
        return (x - mean) / tf.sqrt(variance + 1e-5) * gamma + beta


MARGIN = [1.0]


def relu(x):
    """Keeps the smallest distance from the kink, in deviations: a unit whose sign depends on rounding has no one true gradient."""
    MARGIN[0] = min(MARGIN[0], float(tf.reduce_min(tf.abs(x)) / tf.math.reduce_std(x)))
    return tf.nn.relu(x)


def pool(x):
    return tf.nn.max_pool2d(x, 3, 2, "SAME")


def lrn(x):
    """Radius 4, bias 1, alpha 0.001/9, beta 0.75; TensorFlow's own has no float64."""
    i = np.arange(x.shape[-1])
    band = tf.constant(np.abs(i[:, None] - i[None, :]) <= 4, DTYPE)
    return x * (1 + 0.001 / 9 * tf.tensordot(x * x, band, 1)) ** -0.75


def cifar10(net, x):
    root = 3 ** 0.5
    x = lrn(pool(relu(net.conv("conv1", x, 64, 5, 1, 0.05, 0.0))))
    x = pool(lrn(relu(net.conv("conv2", x, 64, 5, 1, 0.05, 0.1))))
    x = relu(net.dense("local3", tf.reshape(x, [x.shape[0], -1]), 384, root * 0.04, 0.1, 0.004))
    x = relu(net.dense("local4", x, 192, root * 0.04, 0.1, 0.004))
    return net.dense("softmax_linear", x, CLASSES, root / 192, 0.0)


def resnet20(net, x):
    def conv(name, x, filters, window, stride):
        return net.conv(name, x, filters, window, stride, None, decay=1e-4)

    x = relu(net.norm("norm0", conv("conv0", x, 16, 3, 1)))
    for stage, filters in enumerate((16, 32, 64), 1):
        for block in (1, 2, 3):
            p, stride = "stage%d_block%d/" % (stage, block), 2 if stage > 1 and block == 1 else 1
            short = x if stride == 1 else net.norm(p + "projection_norm", conv(p + "projection", x, filters, 1, stride))
            y = relu(net.norm(p + "norm1", conv(p + "conv1", x, filters, 3, stride)))
            x = relu(net.norm(p + "norm2", conv(p + "conv2", y, filters, 3, 1)) + short)
    x = tf.reduce_mean(x, [1, 2])
    return net.dense("linear", x, CLASSES, (6 / (x.shape[-1] + CLASSES)) ** 0.5, 0.0, 1e-4)


def mlp(net, x):
    x = tf.reshape(x, [x.shape[0], -1])
    x = relu(net.dense("hidden1", x, 1024, (6 / x.shape[-1]) ** 0.5, 0.0))
    x = relu(net.dense("hidden2", x, 1024, (6 / x.shape[-1]) ** 0.5, 0.0))
    return net.dense("linear", x, CLASSES, (6 / (x.shape[-1] + CLASSES)) ** 0.5, 0.0)


def total_loss(net, build, images, labels, towers):
    """Towers take the pictures in order, the first ones the remainder; each normalises with its own statistics."""
    net.stats, loss, first, batch = {}, 0, 0, len(labels)
    for t in range(towers):
        rows = slice(first, first + batch // towers + (t < batch % towers))
        first = rows.stop
        each = tf.nn.sparse_softmax_cross_entropy_with_logits(labels[rows], build(net, tf.constant(images[rows], DTYPE)))
        loss += tf.reduce_sum(each) / batch
    return loss + sum(d * tf.nn.l2_loss(net.vars[name]) for name, d in net.decay.items())


def show(what, step, name, value, indices):
    a = np.asarray(value, np.float64).reshape(-1)
    picks = " ".join("%d:%.8g" % (i, a[i]) for i in indices(a.size))
    print("%s %d %s %.8g %.8g %.8g %s" % (what, step, name, np.abs(a).max(), a.sum(), (a * a).sum(), picks))


def picks(n):
    return sorted(set(int(w) % n for w in words(77, SAMPLES)))


def model(name, build, towers, seed, batch, height, width, channels, rate, momentum=0.0, average=0.0):
    images = 2 * uniform(seed, batch * height * width * channels).reshape(batch, height, width, channels)
    labels = (words(seed + 1, batch) >> np.uint32(8)).astype(np.int32) % CLASSES
    net = Net()
    total_loss(net, build, images, labels, 1)
    MARGIN[0] = 1.0
    print("model %s %d %d %d %d %d %d %d %d %.17g" % (name, towers, seed, batch, height, width, channels, CLASSES, STEPS, rate))
    print("\n".join(net.specs))
    slots = {n: tf.zeros_like(v) for n, v in net.vars.items()}
    shadows = {n: v.read_value() for n, v in net.vars.items()} if average else {}
    moving = {n: float(n.endswith("variance")) for n in net.stats}
    for step in range(STEPS):
        with tf.GradientTape() as tape:
            loss = total_loss(net, build, images, labels, towers)
        grads = dict(zip(net.vars, tape.gradient(loss, list(net.vars.values()))))
        print("loss %d %.12g" % (step, loss))
        for n, v in net.vars.items():
            slots[n] = momentum * slots[n] + grads[n]
            v.assign_sub(rate * slots[n])
        for n in moving:
            moving[n] = 0.9 * moving[n] + 0.1 * sum(net.stats[n]) / towers
        decay = min(average, (2 + step) / (11 + step))
        for n in shadows:
            shadows[n] = decay * shadows[n] + (1 - decay) * net.vars[n]
        if step in (0, STEPS - 1):
            for n in net.vars:
                show("grad", step, n, grads[n], picks)
            for n, v in net.vars.items():
                if step or towers == 1:
                    show("weight", step, n, v, picks)
    for n in moving:
        show("moving", STEPS - 1, n, moving[n], picks)
    for n in shadows:
        show("shadow", STEPS - 1, n + "/ExponentialMovingAverage", shadows[n], picks)
    print("end")
    print("%s, %d towers: units stay %.2g deviations from zero" % (name, towers, MARGIN[0]), file=sys.stderr)


if __name__ == "__main__":
    model("cifar10", cifar10, 1, 9000, 6, 24, 24, 3, 0.003, average=0.9999)
    model("mlp", mlp, 1, 9000, 6, 28, 28, 1, 0.0003, momentum=0.9)
    model("resnet20", resnet20, 1, 9007, 2, 16, 16, 3, 0.001, momentum=0.9)
    model("resnet20", resnet20, 2, 9000, 4, 16, 16, 3, 0.001, momentum=0.9)
