"""PyTorch's training step of the built-in networks.

Modes: eager (its own layout), channels_last, compile (channels_last as well, network and loss compiled).
"""
import torch
import torch.nn as nn
import torch.nn.functional as F

import common

MODES = ("eager", "channels_last", "compile")


class Cifar10(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(3, 64, 5, padding=2), nn.Conv2d(64, 64, 5, padding=2)
        self.pool = nn.MaxPool2d(3, 2, ceil_mode=True)  # pads 24 and 12 as SAME does
        size = 2 * common.LRN["radius"] + 1  # its alpha is divided by the window
        self.norm = nn.LocalResponseNorm(size, common.LRN["alpha"] * size, common.LRN["beta"], common.LRN["bias"])
        self.local3, self.local4, self.linear = nn.Linear(64 * 36, 384), nn.Linear(384, 192), nn.Linear(192, common.CLASSES)
        self.decays = [(self.local3.weight, 0.004), (self.local4.weight, 0.004)]

    def forward(self, x):
        x = self.norm(self.pool(F.relu(self.conv1(x), inplace=True)))
        x = self.pool(self.norm(F.relu(self.conv2(x), inplace=True))).flatten(1)
        return self.linear(F.relu(self.local4(F.relu(self.local3(x), inplace=True)), inplace=True))


def conv(i, o, window, stride=1):
    return nn.Conv2d(i, o, window, stride, window // 2, bias=False)


def norm(n):
    return nn.BatchNorm2d(n, common.BN_EPSILON, 1 - common.BN_MOMENTUM)


class Block(nn.Module):
    def __init__(self, i, o, stride):
        super().__init__()
        self.conv1, self.norm1, self.conv2, self.norm2 = conv(i, o, 3, stride), norm(o), conv(o, o, 3), norm(o)
        self.side = nn.Identity() if stride == 1 else nn.Sequential(conv(i, o, 1, stride), norm(o))

    def forward(self, x):
        y = F.relu(self.norm1(self.conv1(x)), inplace=True)
        y = self.norm2(self.conv2(y))
        y += self.side(x)
        return F.relu(y, inplace=True)


class Resnet20(nn.Module):
    def __init__(self):
        super().__init__()
        blocks, i = [], 16
        for stage in range(3):
            for b in range(3):
                o = 16 << stage
                blocks.append(Block(i, o, 2 if stage > 0 and b == 0 else 1))
                i = o
        self.conv0, self.norm0, self.blocks, self.linear = conv(3, 16, 3), norm(16), nn.Sequential(*blocks), nn.Linear(64, common.CLASSES)
        self.decays = [(m.weight, 1e-4) for m in self.modules() if isinstance(m, (nn.Conv2d, nn.Linear))]

    def forward(self, x):
        x = self.blocks(F.relu(self.norm0(self.conv0(x)), inplace=True))
        return self.linear(F.adaptive_avg_pool2d(x, 1).flatten(1))


class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden1, self.hidden2, self.linear = nn.Linear(784, 1024), nn.Linear(1024, 1024), nn.Linear(1024, common.CLASSES)
        self.decays = []

    def forward(self, x):
        x = F.relu(self.hidden1(x.flatten(1)), inplace=True)
        return self.linear(F.relu(self.hidden2(x), inplace=True))


NETWORKS = {"cifar10": Cifar10, "resnet20": Resnet20, "mlp": Mlp}


def optimizer(network, model):
    decays = {id(p): d for p, d in network.decays}
    groups = [{"params": [p for p in network.parameters() if decays.get(id(p), 0.0) == d], "weight_decay": d}
              for d in sorted({0.0, *decays.values()})]
    return torch.optim.SGD(groups, lr=common.LEARNING_RATE, momentum=common.MOMENTUM[model], fused=True)


def training_step(model, mode, batch):
    torch.manual_seed(0)
    network = NETWORKS[model]().train()
    images, labels = common.data(model, batch)
    x = torch.from_numpy(images).permute(0, 3, 1, 2).contiguous()
    y = torch.from_numpy(labels).long()
    if mode != "eager":
        network = network.to(memory_format=torch.channels_last)
        x = x.contiguous(memory_format=torch.channels_last)
    update = optimizer(network, model)

    def loss_of(images, labels):
        return F.cross_entropy(network(images), labels)

    forward = torch.compile(loss_of) if mode == "compile" else loss_of

    def step():
        update.zero_grad(set_to_none=True)
        loss = forward(x, y)
        loss.backward()
        update.step()
        return loss.item()

    return step


def trivial(mode):
    x = torch.arange(24, dtype=torch.float32).reshape(2, 3, 4)
    f = torch.compile(lambda v: v * 2 + 1) if mode == "compile" else lambda v: v * 2 + 1
    return lambda: f(x)


def main():
    model, mode, batch, seconds = common.arguments(MODES)
    torch.set_num_threads(common.THREADS)
    torch.set_num_interop_threads(1)
    name, version = f"torch {mode}", torch.__version__
    if model == "trivial":
        with torch.inference_mode():
            common.measure_trivial(name, version, batch, seconds, trivial(mode), lambda y: y)
    else:
        common.measure(name, version, model, batch, seconds, training_step(model, mode, batch))


if __name__ == "__main__":
    main()
