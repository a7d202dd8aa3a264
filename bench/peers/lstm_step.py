"""PyTorch's, TensorFlow's and JAX's training step of the recurrent network of yoke_lstm.c.

Run as `lstm_step.py MODE [BATCH [SECONDS]]`. Modes: torch, torch_cat (both inputs as one batch, which is the same and faster
there), function (Keras's layer in tf.function), xla (the same compiled by XLA), jax (a scan, with the inputs' product of all steps before it).
"""
import sys

import common

STEPS, FEATURES, UNITS = 140, 256, 64


def inputs(batch):
    import numpy
    rng = numpy.random.default_rng(1)
    return [(rng.random((batch, STEPS, FEATURES)) - 0.5).astype(numpy.float32) for _ in range(2)]


def torch_step(mode, batch):
    import torch
    import torch.nn.functional as F
    torch.set_num_threads(common.THREADS)
    torch.manual_seed(0)
    layer, dense = torch.nn.LSTM(FEATURES, UNITS, batch_first=True), torch.nn.Linear(2 * UNITS, 1)
    x, y = [torch.from_numpy(v) for v in inputs(batch)], torch.ones(batch, 1)
    update = torch.optim.SGD([*layer.parameters(), *dense.parameters()], lr=common.LEARNING_RATE, momentum=0.9)
    both = torch.cat(x)

    def last_states():
        if mode == "torch":
            return [layer(v)[0][:, -1] for v in x]
        out = layer(both)[0][:, -1]
        return [out[:batch], out[batch:]]

    def step():
        update.zero_grad(set_to_none=True)
        loss = F.binary_cross_entropy_with_logits(dense(torch.cat(last_states(), 1)), y)
        loss.backward()
        update.step()
        return loss.item()

    return "torch " + torch.__version__, step


def tensorflow_step(mode, batch):
    import tensorflow as tf
    tf.config.threading.set_intra_op_parallelism_threads(common.THREADS)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    layer, dense = tf.keras.layers.LSTM(UNITS), tf.keras.layers.Dense(1)
    x, y = [tf.constant(v) for v in inputs(batch)], tf.ones([batch, 1])
    dense(tf.concat([layer(v) for v in x], 1))
    update = tf.keras.optimizers.SGD(common.LEARNING_RATE, momentum=0.9)
    weights = [*layer.trainable_variables, *dense.trainable_variables]
    update.build(weights)

    @tf.function(jit_compile=mode == "xla")
    def step(a, b):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(y, dense(tf.concat([layer(a), layer(b)], 1))))
        update.apply_gradients(zip(tape.gradient(loss, weights), weights))
        return loss

    return "tensorflow " + tf.__version__, lambda: float(step(*x))


def jax_step(mode, batch):
    import jax
    import jax.numpy as jnp
    x, y = [jnp.asarray(v) for v in inputs(batch)], jnp.ones((batch, 1))
    keys = jax.random.split(jax.random.key(0), 3)
    weights = {"kernel": jax.random.uniform(keys[0], (FEATURES, 4 * UNITS), minval=-0.1, maxval=0.1), "bias": jnp.zeros(4 * UNITS),
               "recurrent": jax.random.uniform(keys[1], (UNITS, 4 * UNITS), minval=-0.1, maxval=0.1),
               "dense": jax.random.uniform(keys[2], (2 * UNITS, 1), minval=-0.1, maxval=0.1), "dense_bias": jnp.zeros(1)}

    def last_state(w, v):
        def cell(state, gates):
            h, c = state
            i, f, g, o = jnp.split(gates + h @ w["recurrent"], 4, axis=1)
            c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
            return (jax.nn.sigmoid(o) * jnp.tanh(c), c), None

        zero = jnp.zeros((v.shape[0], UNITS))
        return jax.lax.scan(cell, (zero, zero), jnp.swapaxes(v @ w["kernel"] + w["bias"], 0, 1))[0][0]

    def loss_of(w, a, b):
        both = last_state(w, jnp.concatenate([a, b]))
        logits = jnp.concatenate([both[:batch], both[batch:]], 1) @ w["dense"] + w["dense_bias"]
        return jnp.mean(jnp.maximum(logits, 0) - logits * y + jnp.log1p(jnp.exp(-jnp.abs(logits))))

    @jax.jit
    def step(w, m, a, b):
        loss, grads = jax.value_and_grad(loss_of)(w, a, b)
        m = jax.tree.map(lambda v, g: 0.9 * v + g, m, grads)
        return jax.tree.map(lambda p, v: p - common.LEARNING_RATE * v, w, m), m, loss

    state = [weights, jax.tree.map(jnp.zeros_like, weights)]

    def run():
        state[0], state[1], loss = step(*state, *x)
        return float(loss)

    return "jax " + jax.__version__, run


SYSTEMS = {"torch": torch_step, "torch_cat": torch_step, "function": tensorflow_step, "xla": tensorflow_step, "jax": jax_step}


def main():
    if not 2 <= len(sys.argv) <= 4 or sys.argv[1] not in SYSTEMS:
        sys.exit(f"usage: {sys.argv[0]} {'|'.join(SYSTEMS)} [BATCH [SECONDS]]")
    batch, seconds = int(sys.argv[2]) if len(sys.argv) > 2 else 64, float(sys.argv[3]) if len(sys.argv) > 3 else 3.0
    version, step = SYSTEMS[sys.argv[1]](sys.argv[1], batch)
    common.measure(sys.argv[1], version, "lstm", batch, seconds, step)


if __name__ == "__main__":
    main()
