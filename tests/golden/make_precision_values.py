#!/usr/bin/env python3
"""Write precision_values.txt: mixed precision as PyTorch does it, for test_precision.c of this folder.

Two small networks of bfloat16 and float16 products under torch.autocast("cpu"), float16 with a GradScaler, ten steps each,
beside the same in float32; and what GradScaler makes of rows of good and of overflowing steps.

    python3 -m venv venv && venv/bin/pip install torch
    venv/bin/python make_precision_values.py > precision_values.txt

The convolution is written as the one product that it is: where the processor has no bfloat16 instructions, PyTorch's own adds
the filter's gradient up picture by picture in bfloat16, which says more about that loop than about mixed precision.

The networks, of batches of 24: `dense` is 12-32-32-5 with biases and ReLU; `conv` is a 3x3 convolution of [24, 6, 6, 3] (NHWC)
to 8 with stride 2, a row of padding all round, a bias and ReLU, and a dense layer to 5. SGD of 0.1 and momentum 0.9. Element i of tensor k (input 0,
then weights and biases in order, in NHWC and HWIO): ((i*(31*i + 17) + 101*k) mod 97 - 48)/48 times 1 for the input, 0.3 for
weights, 0.1 for biases; the label of an example is which of its first five elements is the largest.
Format, one item a line:
    loss <network> <type> <value of step 1> ...
    scaler <start> <interval> <x>:<scale>:<good steps>:<skipped so far>:<w> ...    after the step with that x
The scaler's w starts at 1, its gradient is x, worked out in float16: x times the scale overflows from 65520 on. SGD of 2^-20.
"""
import math

import torch
import torch.nn.functional as F

STEPS = 10
torch.set_num_threads(1)


def made(k, scale, *shape):
    n = math.prod(shape)
    return torch.tensor([scale * ((i * (31 * i + 17) + 101 * k) % 97 - 48) / 48 for i in range(n)], dtype=torch.float64).float().reshape(shape)


def parameter(t):
    return torch.nn.Parameter(t.contiguous())


def dense():
    x = made(0, 1.0, 24, 12)
    w = [parameter(made(1, 0.3, 12, 32)), parameter(made(2, 0.1, 32)), parameter(made(3, 0.3, 32, 32)), parameter(made(4, 0.1, 32)),
         parameter(made(5, 0.3, 32, 5)), parameter(made(6, 0.1, 5))]

    def net():
        h = F.relu(F.linear(x, w[0].t(), w[1]))
        h = F.relu(F.linear(h, w[2].t(), w[3]))
        return F.linear(h, w[4].t(), w[5])
    return w, x, net


def conv():
    x = made(0, 1.0, 24, 6, 6, 3).permute(0, 3, 1, 2).contiguous()
    w = [parameter(made(1, 0.3, 3, 3, 3, 8).permute(3, 2, 0, 1)), parameter(made(2, 0.1, 8)), parameter(made(3, 0.3, 72, 5)),
         parameter(made(4, 0.1, 5))]

    def net():
        cols = F.unfold(x, 3, padding=1, stride=2).transpose(1, 2).reshape(24 * 9, 27)
        h = F.relu(F.linear(cols, w[0].reshape(8, 27), w[1]))
        return F.linear(h.reshape(24, 72), w[2].t(), w[3])
    return w, x.permute(0, 2, 3, 1), net


def losses(make, dtype):
    w, x, net = make()
    labels = x.reshape(24, -1)[:, :5].argmax(1)
    opt = torch.optim.SGD(w, lr=0.1, momentum=0.9)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0 ** 15, enabled=dtype == torch.float16)
    out = []
    for _ in range(STEPS):
        opt.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16 if dtype == torch.float32 else dtype, enabled=dtype != torch.float32):
            loss = F.cross_entropy(net(), labels)
        assert loss.dtype == torch.float32
        out.append(loss.item())
        scaler.scale(loss).backward()
        scaler.step(opt)
        scaler.update()
    return out


def scaler(start, interval, xs):
    w = torch.nn.Parameter(torch.ones(1))
    opt = torch.optim.SGD([w], lr=2.0 ** -20)
    s = torch.amp.GradScaler("cpu", init_scale=start, growth_factor=2.0, backoff_factor=0.5, growth_interval=interval)
    out, skipped = [], 0
    for x in xs:
        opt.zero_grad()
        loss = (w.half() * torch.tensor([x]).half()).float().sum()
        s.scale(loss).backward()
        before = w.item()
        s.step(opt)
        found = sum(v.item() for v in s._per_optimizer_states[id(opt)]["found_inf_per_device"].values())
        skipped += found > 0
        assert (w.item() == before) == (found > 0)
        s.update()
        out.append("%g:%.17g:%d:%d:%.9g" % (x, s.get_scale(), s._get_growth_tracker(), skipped, w.item()))
    print("scaler %.17g %d" % (start, interval), *out)


for name, make in (("dense", dense), ("conv", conv)):
    for kind, dtype in (("f32", torch.float32), ("bf16", torch.bfloat16), ("f16", torch.float16)):
        print("loss", name, kind, *("%.9g" % v for v in losses(make, dtype)))

rows = [[0.5, 1, 2, 4][(i * i + i // 3) % 4] for i in range(40)]            # finds its level and stays about it
scaler(2.0 ** 15, 3, rows)
scaler(2.0 ** 15, 2000, [4, 4, 4, 1, 1, 0.5, 64, 1, 1, 1])                  # never grows in so few steps
scaler(2.0 ** 10, 1, [0.25] * 12 + [8, 8, 8, 0.25])                         # doubles at once until it overflows
scaler(65536, 2, [1, 1, 1e5, 1, 1, 1, 1, 1])                                # PyTorch's start; 1e5 is infinite by itself
scaler(2.0 ** 15, 4, [0.5, 0.5, 0.5, 4, 0.5, 0.5, 0.5, 0.5, 0.5])           # an overflow just before it would have doubled
scaler(1, 2, [60000, 60000, 60000, 60000, 60000])                           # about 1
