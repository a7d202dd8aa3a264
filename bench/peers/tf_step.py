"""TensorFlow's training step of the built-in networks, pictures as [N, H, W, C].

Modes: session (a graph and a Session, as in TensorFlow 1), function (tf.function), xla (tf.function compiled by XLA).
"""
import tensorflow as tf

import common

MODES = ("session", "function", "xla")
v1 = tf.compat.v1


class Network:
    """Makes its variables when built, in the current graph or eagerly; a call builds the forward pass."""

    def __init__(self):
        self.weights, self.decays, self.moving = [], [], []
        self.build()

    def weight(self, shape, deviation, decay=0.0):
        self.weights.append(tf.Variable(tf.random.truncated_normal(shape, stddev=deviation, seed=1)))
        if decay > 0:
            self.decays.append((self.weights[-1], decay))
        return self.weights[-1]

    def constant(self, n, value):
        self.weights.append(tf.Variable(tf.fill([n], value)))
        return self.weights[-1]

    def norm_variables(self, n):
        v = [self.constant(n, 1.0), self.constant(n, 0.0), tf.Variable(tf.zeros([n]), trainable=False), tf.Variable(tf.ones([n]), trainable=False)]
        self.moving.append(v[2:])
        return v

    def norm(self, x, v, updates):
        y, mean, variance = v1.nn.fused_batch_norm(x, v[0], v[1], epsilon=common.BN_EPSILON, is_training=True)
        updates += [m.assign_sub((m - s) * (1 - common.BN_MOMENTUM)) for m, s in zip(v[2:], (mean, variance))]
        return y

    def penalty(self):
        return [tf.nn.l2_loss(w) * d for w, d in self.decays]


def conv(x, w, stride=1):
    return tf.nn.conv2d(x, w, stride, "SAME")


class Cifar10(Network):
    def build(self):
        self.conv1, self.bias1 = self.weight([5, 5, 3, 64], 0.05), self.constant(64, 0.0)
        self.conv2, self.bias2 = self.weight([5, 5, 64, 64], 0.05), self.constant(64, 0.1)
        self.local3, self.bias3 = self.weight([2304, 384], 0.04, 0.004), self.constant(384, 0.1)
        self.local4, self.bias4 = self.weight([384, 192], 0.04, 0.004), self.constant(192, 0.1)
        self.linear, self.bias5 = self.weight([192, common.CLASSES], 1 / 192), self.constant(common.CLASSES, 0.0)

    def __call__(self, x, updates):
        def lrn(v):
            return tf.nn.local_response_normalization(v, common.LRN["radius"], common.LRN["bias"], common.LRN["alpha"], common.LRN["beta"])
        x = lrn(tf.nn.max_pool2d(tf.nn.relu(tf.nn.bias_add(conv(x, self.conv1), self.bias1)), 3, 2, "SAME"))
        x = tf.nn.max_pool2d(lrn(tf.nn.relu(tf.nn.bias_add(conv(x, self.conv2), self.bias2))), 3, 2, "SAME")
        x = tf.reshape(x, [-1, 2304])
        x = tf.nn.relu(tf.nn.bias_add(tf.matmul(x, self.local3), self.bias3))
        x = tf.nn.relu(tf.nn.bias_add(tf.matmul(x, self.local4), self.bias4))
        return tf.nn.bias_add(tf.matmul(x, self.linear), self.bias5)


class Resnet20(Network):
    def filters(self, i, o, window):
        return self.weight([window, window, i, o], (2 / (window * window * i)) ** 0.5, 1e-4)

    def build(self):
        self.conv0, self.norm0, self.blocks, i = self.filters(3, 16, 3), self.norm_variables(16), [], 16
        for stage in range(3):
            for b in range(3):
                o, stride = 16 << stage, 2 if stage > 0 and b == 0 else 1
                side = (self.filters(i, o, 1), self.norm_variables(o)) if stride == 2 else None
                self.blocks.append((stride, side, self.filters(i, o, 3), self.norm_variables(o), self.filters(o, o, 3), self.norm_variables(o)))
                i = o
        self.linear, self.bias = self.weight([64, common.CLASSES], 0.1, 1e-4), self.constant(common.CLASSES, 0.0)

    def __call__(self, x, updates):
        x = tf.nn.relu(self.norm(conv(x, self.conv0), self.norm0, updates))
        for stride, side, conv1, norm1, conv2, norm2 in self.blocks:
            shortcut = x if side is None else self.norm(conv(x, side[0], stride), side[1], updates)
            y = tf.nn.relu(self.norm(conv(x, conv1, stride), norm1, updates))
            x = tf.nn.relu(self.norm(conv(y, conv2), norm2, updates) + shortcut)
        return tf.nn.bias_add(tf.matmul(tf.reduce_mean(x, [1, 2]), self.linear), self.bias)


class Mlp(Network):
    def build(self):
        self.hidden1, self.bias1 = self.weight([784, 1024], 0.05), self.constant(1024, 0.0)
        self.hidden2, self.bias2 = self.weight([1024, 1024], 0.04), self.constant(1024, 0.0)
        self.linear, self.bias3 = self.weight([1024, common.CLASSES], 0.04), self.constant(common.CLASSES, 0.0)

    def __call__(self, x, updates):
        x = tf.nn.relu(tf.nn.bias_add(tf.matmul(tf.reshape(x, [-1, 784]), self.hidden1), self.bias1))
        x = tf.nn.relu(tf.nn.bias_add(tf.matmul(x, self.hidden2), self.bias2))
        return tf.nn.bias_add(tf.matmul(x, self.linear), self.bias3)


NETWORKS = {"cifar10": Cifar10, "resnet20": Resnet20, "mlp": Mlp}


def loss_of(network, x, y, updates):
    each = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=network(x, updates))
    return tf.add_n([tf.reduce_mean(each), *network.penalty()])


def session_step(model, batch):
    images, labels = common.data(model, batch)
    with tf.Graph().as_default():
        network, updates = NETWORKS[model](), []
        x, y = tf.Variable(images, trainable=False), tf.Variable(labels, trainable=False)  # in memory, and not folded away
        loss = loss_of(network, x, y, updates)
        momentum, rate = common.MOMENTUM[model], common.LEARNING_RATE
        optimizer = v1.train.MomentumOptimizer(rate, momentum) if momentum else v1.train.GradientDescentOptimizer(rate)
        train = tf.group(optimizer.minimize(loss, var_list=network.weights), *updates)
        session = v1.Session(config=v1.ConfigProto(intra_op_parallelism_threads=common.THREADS, inter_op_parallelism_threads=1))
        session.run(v1.global_variables_initializer())
        run = session.make_callable([loss, train])
    return lambda: float(run()[0])


def function_step(model, batch, xla):
    network = NETWORKS[model]()
    x, y = map(tf.constant, common.data(model, batch))
    momentum, rate = common.MOMENTUM[model], common.LEARNING_RATE
    slots = [tf.Variable(tf.zeros_like(w)) for w in network.weights] if momentum else []

    @tf.function(jit_compile=xla)
    def step(x, y):
        updates = []
        with tf.GradientTape() as tape:
            loss = loss_of(network, x, y, updates)
        gradients = tape.gradient(loss, network.weights)
        for i, (w, g) in enumerate(zip(network.weights, gradients)):
            if momentum:
                tf.raw_ops.ResourceApplyMomentum(var=w.handle, accum=slots[i].handle, lr=rate, grad=g, momentum=momentum)
            else:
                tf.raw_ops.ResourceApplyGradientDescent(var=w.handle, alpha=rate, delta=g)
        return loss

    return lambda: float(step(x, y))


def trivial(mode):
    value = tf.reshape(tf.range(24, dtype=tf.float32), [2, 3, 4]) if mode != "session" else None
    if mode == "session":
        import numpy
        with tf.Graph().as_default():
            x = v1.placeholder(tf.float32, [2, 3, 4])
            run = v1.Session().make_callable(x * 2 + 1, feed_list=[x])
        array = numpy.arange(24, dtype=numpy.float32).reshape(2, 3, 4)
        return lambda: run(array)
    f = tf.function(lambda v: v * 2 + 1, jit_compile=mode == "xla")
    return lambda: f(value)


def main():
    model, mode, batch, seconds = common.arguments(MODES)
    tf.config.threading.set_intra_op_parallelism_threads(common.THREADS)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    name, version = f"tensorflow {mode}", tf.__version__
    if model == "trivial":
        common.measure_trivial(name, version, batch, seconds, trivial(mode), lambda y: y if mode == "session" else y.numpy())
    else:
        step = session_step(model, batch) if mode == "session" else function_step(model, batch, mode == "xla")
        common.measure(name, version, model, batch, seconds, step)


if __name__ == "__main__":
    main()
