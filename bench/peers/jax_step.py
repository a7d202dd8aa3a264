"""JAX's training step of the built-in networks, pictures as [N, H, W, C], the whole step in one jit.

JAX has no response normalisation; it is written as a sum of shifted squares, which XLA fuses.
"""
import jax
import jax.numpy as jnp
from jax import lax

import common

MODES = ("jit",)


class Parameters:
    """Numbers the variables in the order in which a network asks for them: the first pass makes them, later ones read."""

    def __init__(self, values=None):
        self.values, self.made, self.decays, self.statistics, self.key, self.next = values, [], [], [], jax.random.key(0), 0

    def take(self, make):
        self.next += 1
        if self.values is not None:
            return self.values[self.next - 1]
        self.made.append(make())
        return self.made[-1]

    def weight(self, shape, deviation, decay=0.0):
        self.key, key = jax.random.split(self.key)
        w = self.take(lambda: jax.random.truncated_normal(key, -2, 2, shape) * deviation)
        if decay > 0:
            self.decays.append(decay * jnp.sum(w * w) / 2)
        return w

    def constant(self, n, value):
        return self.take(lambda: jnp.full((n,), value))

    def norm(self, x):
        """Batch normalisation by this batch; its statistics are kept for the moving ones."""
        n = x.shape[-1]
        gamma, beta = self.constant(n, 1.0), self.constant(n, 0.0)
        mean = jnp.mean(x, (0, 1, 2))
        variance = jnp.mean(jnp.square(x), (0, 1, 2)) - jnp.square(mean)
        self.statistics.append((mean, variance))
        return (x - mean) * (gamma * lax.rsqrt(variance + common.BN_EPSILON)) + beta


def conv(x, w, stride=1):
    return lax.conv_general_dilated(x, w, (stride, stride), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))


def max_pool(x):
    return lax.reduce_window(x, -jnp.inf, lax.max, (1, 3, 3, 1), (1, 2, 2, 1), "SAME")


def lrn(x):
    r, n = common.LRN["radius"], x.shape[-1]
    squares = jnp.pad(x * x, ((0, 0), (0, 0), (0, 0), (r, r)))
    s = common.LRN["bias"] + common.LRN["alpha"] * sum(squares[..., d:d + n] for d in range(2 * r + 1))
    root = jnp.sqrt(s)
    return x / (root * jnp.sqrt(root))  # s to the power of 0.75


def cifar10(p, x):
    relu = jax.nn.relu
    x = lrn(max_pool(relu(conv(x, p.weight((5, 5, 3, 64), 0.05)) + p.constant(64, 0.0))))
    x = max_pool(lrn(relu(conv(x, p.weight((5, 5, 64, 64), 0.05)) + p.constant(64, 0.1)))).reshape(x.shape[0], 2304)
    x = relu(x @ p.weight((2304, 384), 0.04, 0.004) + p.constant(384, 0.1))
    x = relu(x @ p.weight((384, 192), 0.04, 0.004) + p.constant(192, 0.1))
    return x @ p.weight((192, common.CLASSES), 1 / 192) + p.constant(common.CLASSES, 0.0)


def resnet20(p, x):
    relu, i = jax.nn.relu, 16

    def filters(i, o, window):
        return p.weight((window, window, i, o), (2 / (window * window * i)) ** 0.5, 1e-4)

    x = relu(p.norm(conv(x, filters(3, 16, 3))))
    for stage in range(3):
        for b in range(3):
            o, stride = 16 << stage, 2 if stage > 0 and b == 0 else 1
            side = x if stride == 1 else p.norm(conv(x, filters(i, o, 1), stride))
            y = relu(p.norm(conv(x, filters(i, o, 3), stride)))
            x = relu(p.norm(conv(y, filters(o, o, 3))) + side)
            i = o
    return jnp.mean(x, (1, 2)) @ p.weight((64, common.CLASSES), 0.1, 1e-4) + p.constant(common.CLASSES, 0.0)


def mlp(p, x):
    x = jax.nn.relu(x.reshape(x.shape[0], 784) @ p.weight((784, 1024), 0.05) + p.constant(1024, 0.0))
    x = jax.nn.relu(x @ p.weight((1024, 1024), 0.04) + p.constant(1024, 0.0))
    return x @ p.weight((1024, common.CLASSES), 0.04) + p.constant(common.CLASSES, 0.0)


NETWORKS = {"cifar10": cifar10, "resnet20": resnet20, "mlp": mlp}


def training_step(model, batch):
    network, momentum, rate = NETWORKS[model], common.MOMENTUM[model], common.LEARNING_RATE
    images, labels = map(jnp.asarray, common.data(model, batch))
    first = Parameters()
    network(first, images[:1])
    moving = [(jnp.zeros_like(m), jnp.ones_like(v)) for m, v in first.statistics]
    state = [first.made, [jnp.zeros_like(w) for w in first.made] if momentum else [], moving]

    def loss_of(weights, x, y):
        p = Parameters(weights)
        logits = network(p, x)
        chosen = jnp.take_along_axis(jax.nn.log_softmax(logits), y[:, None], 1)
        return sum(p.decays, -jnp.mean(chosen)), p.statistics

    def step(state, x, y):
        weights, slots, moving = state
        (loss, statistics), gradients = jax.value_and_grad(loss_of, has_aux=True)(weights, x, y)
        if momentum:
            slots = gradients = [momentum * a + g for a, g in zip(slots, gradients)]
        weights = [w - rate * g for w, g in zip(weights, gradients)]
        moving = jax.tree.map(lambda m, s: m - (m - s) * (1 - common.BN_MOMENTUM), moving, statistics)
        return [weights, slots, moving], loss

    jitted = jax.jit(step, donate_argnums=0)

    def run():
        nonlocal state
        state, loss = jitted(state, images, labels)
        value = float(loss)
        jax.block_until_ready(state)
        return value

    return run


def main():
    model, mode, batch, seconds = common.arguments(MODES)
    name, version = f"jax {mode}", jax.__version__
    if model == "trivial":
        x, f = jnp.arange(24, dtype=jnp.float32).reshape(2, 3, 4), jax.jit(lambda v: v * 2 + 1)
        common.measure_trivial(name, version, batch, seconds, lambda: f(x), jax.block_until_ready)
    else:
        common.measure(name, version, model, batch, seconds, training_step(model, batch))


if __name__ == "__main__":
    main()
