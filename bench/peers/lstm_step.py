"""PyTorch's and TensorFlow's training step of the recurrent network of yoke_lstm.c.

Run as `lstm_step.py MODE [BATCH [SECONDS]]`. Modes: torch, torch_cat (both inputs as one batch, which is the same and faster
there), function (Keras's layer in tf.function), xla (the same compiled by XLA).
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


def main():
    if not 2 <= len(sys.argv) <= 4 or sys.argv[1] not in ("torch", "torch_cat", "function", "xla"):
        sys.exit(f"usage: {sys.argv[0]} torch|torch_cat|function|xla [BATCH [SECONDS]]")
    batch, seconds = int(sys.argv[2]) if len(sys.argv) > 2 else 64, float(sys.argv[3]) if len(sys.argv) > 3 else 3.0
    version, step = (torch_step if sys.argv[1].startswith("torch") else tensorflow_step)(sys.argv[1], batch)
    common.measure(sys.argv[1], version, "lstm", batch, seconds, step)


if __name__ == "__main__":
    main()
