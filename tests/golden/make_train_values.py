#!/usr/bin/env python3
"""Write train_values.txt: ten steps of every optimizer, schedule, clipping and moving average as their own libraries do them.

Optimizers are TensorFlow's (tf.compat.v1.train), Keras's forms those of tf_keras.optimizers.legacy, AdamW and LAMB those of
Keras 3, all in float32. LAMB with weight decay inside the norm, as in the paper, is in no installed library: it is written
down here in float64. The one-cycle schedule is PyTorch's: run this with "--one-cycle" where PyTorch is installed.

    python3 -m venv venv && venv/bin/pip install tensorflow-cpu==2.21.0 tf-keras==2.21.0
    venv/bin/python make_train_values.py > train_values.txt
    venv-with-torch/bin/python make_train_values.py --one-cycle >> train_values.txt

The problem: w [4, 3] with loss sum(a*(w - t)^2)/2, and a table [6, 3] of which rows 0, 2, 2, 5 are looked up, with loss
sum(c*(rows - u)^2)/2. Element i: w, table ((7i) mod 11 - 5)/8; a, c 1 + ((5i) mod 7)/4; t, u ((3i) mod 13 - 6)/8.
Format, one item a line:
    optimizer <name> <dense|sparse> <step> <value> ...      the variable after the step
    schedule <name> <step>:<rate> ...
    clip <name> <norm|-> <value> ...                        gradients [3, 4] and [0, 12], as one list
    average <name> <value> ...                              after each step
"""
import math
import os
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"
STEPS = 10


def show(values):
    return " ".join("%.9g" % x for x in values)


def one_cycle():
    import torch
    w = torch.nn.Parameter(torch.zeros(1))
    for name, kw in (("one_cycle", dict(max_lr=0.5, total_steps=20)),
                     ("one_cycle_other", dict(max_lr=0.2, total_steps=15, pct_start=0.5, div_factor=10, final_div_factor=100))):
        opt = torch.optim.SGD([w], lr=0.1)
        plan = torch.optim.lr_scheduler.OneCycleLR(opt, anneal_strategy="cos", cycle_momentum=False, **kw)
        rates = []
        for step in range(kw["total_steps"]):
            rates.append("%d:%.12g" % (step, opt.param_groups[0]["lr"]))
            opt.step()
            if step + 1 < kw["total_steps"]:
                plan.step()
        print("schedule", name, *rates)


if "--one-cycle" in sys.argv[1:]:
    one_cycle()
    sys.exit()

import numpy as np
import tensorflow as tf
import tf_keras
import keras
from tensorflow.python.training import moving_averages

v1 = tf.compat.v1
W = np.array([((7 * i) % 11 - 5) / 8 for i in range(18)], np.float32)
A = np.array([1 + ((5 * i) % 7) / 4 for i in range(12)], np.float32)
U = np.array([((3 * i) % 13 - 6) / 8 for i in range(12)], np.float32)
ROWS = [0, 2, 2, 5]


def start(kind):
    return W[:12].reshape(4, 3) if kind == "dense" else W.reshape(6, 3)


def loss_of(kind, v):
    x = v if kind == "dense" else tf.gather(v, ROWS)
    return 0.5 * tf.reduce_sum(A.reshape(4, 3) * tf.square(x - U.reshape(4, 3)))


def tf1(name, make, kinds=("dense", "sparse")):
    for kind in kinds:
        with tf.Graph().as_default(), v1.Session() as s:
            v = v1.Variable(start(kind), use_resource=True)
            train = make().minimize(loss_of(kind, v))
            s.run(v1.global_variables_initializer())
            for step in range(STEPS):
                s.run(train)
                print("optimizer", name, kind, step + 1, show(s.run(v).ravel()))


def eager(name, opt, apply):
    v = keras.Variable(start("dense")) if apply == "keras3" else tf.Variable(start("dense"))
    for step in range(STEPS):
        x = v.value if apply == "keras3" else v
        with tf.GradientTape() as tape:
            tape.watch(x)
            loss = loss_of("dense", x)
        g = tape.gradient(loss, x)
        if apply == "keras3":
            opt.apply([g], [v])
        else:
            opt.apply_gradients([(g, v)])
        print("optimizer", name, "dense", step + 1, show(v.numpy().ravel()))


def lamb(name, lr, decay, b1=0.9, b2=0.999, eps=1e-6):
    w, m, v = W[:12].astype(np.float64), np.zeros(12), np.zeros(12)
    for t in range(1, STEPS + 1):
        g = A.astype(np.float64) * (w - U)
        m += (1 - b1) * (g - m)
        v += (1 - b2) * (g * g - v)
        r = m / (1 - b1 ** t) / (np.sqrt(v / (1 - b2 ** t)) + eps) + decay * w
        w -= lr * np.linalg.norm(w) / np.linalg.norm(r) * r
        print("optimizer", name, "dense", t, show(w))


def optimizers():
    t = v1.train
    tf1("sgd", lambda: t.GradientDescentOptimizer(0.1))
    tf1("momentum", lambda: t.MomentumOptimizer(0.1, 0.9))
    tf1("nesterov", lambda: t.MomentumOptimizer(0.1, 0.9, use_nesterov=True))
    tf1("adam", lambda: t.AdamOptimizer(0.1))
    tf1("adam_other", lambda: t.AdamOptimizer(0.02, beta1=0.5, beta2=0.9, epsilon=1e-3))
    tf1("rmsprop", lambda: t.RMSPropOptimizer(0.05))
    tf1("rmsprop_momentum", lambda: t.RMSPropOptimizer(0.05, decay=0.8, momentum=0.5, epsilon=1e-3))
    tf1("rmsprop_centered", lambda: t.RMSPropOptimizer(0.02, momentum=0.3, epsilon=1e-3, centered=True))
    tf1("adagrad", lambda: t.AdagradOptimizer(0.1))
    tf1("adadelta", lambda: t.AdadeltaOptimizer(1.0, rho=0.9, epsilon=1e-4))
    tf1("ftrl", lambda: t.FtrlOptimizer(0.1))
    tf1("ftrl_other", lambda: t.FtrlOptimizer(0.2, l1_regularization_strength=0.05, l2_regularization_strength=0.02,
                                              l2_shrinkage_regularization_strength=0.01))
    tf1("ftrl_power", lambda: t.FtrlOptimizer(0.2, learning_rate_power=-0.7), ("dense",))
    k2 = tf_keras.optimizers.legacy
    eager("keras_sgd", k2.SGD(0.1, momentum=0.9), "keras2")
    eager("keras_nesterov", k2.SGD(0.1, momentum=0.9, nesterov=True), "keras2")
    eager("keras_decay", k2.SGD(0.1, momentum=0.9, decay=0.3), "keras2")
    # Small rates: how Keras rounds 1 - beta2^t in float32 moves a step by 1e-5 of its size.
    eager("keras_adam", k2.Adam(0.02), "keras2")
    eager("keras_rmsprop", k2.RMSprop(0.05), "keras2")
    eager("keras_adagrad", k2.Adagrad(0.1, initial_accumulator_value=0.0), "keras2")
    eager("keras_adadelta", k2.Adadelta(1.0), "keras2")
    eager("adamw", keras.optimizers.AdamW(0.005, weight_decay=0.5, epsilon=1e-8), "keras3")
    eager("lamb", keras.optimizers.Lamb(0.02, epsilon=1e-6), "keras3")
    lamb("lamb_decay", 0.02, 0.05)


def schedules():
    t = v1.train
    made = {
        "exponential": lambda s: t.exponential_decay(0.5, s, 4, 0.7),
        "exponential_staircase": lambda s: t.exponential_decay(0.5, s, 4, 0.7, staircase=True),
        "natural_exp": lambda s: t.natural_exp_decay(0.5, s, 4, 0.7),
        "natural_exp_staircase": lambda s: t.natural_exp_decay(0.5, s, 4, 0.7, staircase=True),
        "inverse_time": lambda s: t.inverse_time_decay(0.5, s, 4, 0.7),
        "inverse_time_staircase": lambda s: t.inverse_time_decay(0.5, s, 4, 0.7, staircase=True),
        "piecewise": lambda s: t.piecewise_constant(s, [3, 7], [0.5, 0.1, 0.02]),
        "polynomial": lambda s: t.polynomial_decay(0.5, s, 6),
        "polynomial_power": lambda s: t.polynomial_decay(0.5, s, 6, end_learning_rate=0.01, power=2.0),
        "polynomial_cycle": lambda s: t.polynomial_decay(0.5, s, 6, end_learning_rate=0.01, power=0.5, cycle=True),
        "cosine": lambda s: t.cosine_decay(0.5, s, 8),
        "cosine_alpha": lambda s: t.cosine_decay(0.5, s, 8, alpha=0.1),
        "restarts": lambda s: t.cosine_decay_restarts(0.5, s, 3),
        "restarts_other": lambda s: t.cosine_decay_restarts(0.5, s, 4, t_mul=1.0, m_mul=0.8, alpha=0.05),
        "restarts_long": lambda s: t.cosine_decay_restarts(0.5, s, 2, t_mul=1.5, m_mul=0.9),
    }
    for name, make in made.items():
        with tf.Graph().as_default(), v1.Session() as s:
            step = v1.placeholder(tf.int64, [])
            rate = make(step)
            print("schedule", name, *["%d:%.9g" % (k, s.run(rate, {step: k})) for k in range(22)])
    warm = keras.optimizers.schedules.CosineDecay(0.1, 8, alpha=0.1, warmup_target=0.5, warmup_steps=5)
    print("schedule cosine_warm_up", *["%d:%.9g" % (k, float(warm(k))) for k in range(22)])


def clipping():
    g = [tf.constant([3.0, 4.0]), tf.constant([0.0, 12.0])]
    for norm in (1.0, 13.0, 20.0):
        clipped, n = tf.clip_by_global_norm(g, norm)
        print("clip global_%g %.9g %s" % (norm, float(n), show(np.concatenate(clipped))))
    clipped, n = tf.clip_by_global_norm([tf.constant([math.inf, 4.0]), g[1]], 1.0)
    print("clip global_infinite %g %s" % (float(n), show(np.concatenate(clipped))))
    print("clip norm_4.5 - %s" % show(np.concatenate([tf.clip_by_norm(x, 4.5) for x in g])))
    print("clip value - %s" % show(np.concatenate([tf.clip_by_value(x, 0.5, 3.5) for x in g])))


def averages():
    x = [((7 * i) % 11 - 5) / 8 for i in range(STEPS)]
    for name, updates in (("plain", False), ("num_updates", True)):
        with tf.Graph().as_default(), v1.Session() as s:
            v, step = v1.Variable(0.75), v1.placeholder(tf.float32, [])
            fed, ema = v1.placeholder(tf.float32, []), v1.train.ExponentialMovingAverage(0.9, num_updates=step if updates else None)
            follow, move = ema.apply([v]), v.assign(fed)
            s.run(v1.global_variables_initializer())
            out = []
            for k in range(STEPS):
                s.run(move, {fed: x[k]})
                s.run(follow, {step: k})
                out.append(s.run(ema.average(v)))
            print("average", name, show(out))
    for name, debias in (("assigned", False), ("debiased", True)):
        with tf.Graph().as_default(), v1.Session() as s:
            v, fed = v1.get_variable("v", initializer=0.75), v1.placeholder(tf.float32, [])
            follow = moving_averages.assign_moving_average(v, fed, 0.9, zero_debias=debias)
            s.run(v1.global_variables_initializer())
            out = []
            for k in range(STEPS):
                s.run(follow, {fed: x[k]})
                out.append(s.run(v))
            print("average", name, show(out))


optimizers()
schedules()
clipping()
averages()
