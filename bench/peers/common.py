"""What the peers' programs share: data, clock, and the line of JSON that the programs in C print too.

A peer is run as `X_step.py MODEL MODE [BATCH [SECONDS]]`. It gives `measure` a function that does one whole training step
and returns its loss as a number, which also waits for the step to end.
"""
import json
import math
import os
import statistics
import sys
import time

SIZES = {"cifar10": (24, 24, 3), "resnet20": (32, 32, 3), "mlp": (28, 28, 1)}
BATCHES = {"cifar10": 128, "resnet20": 128, "mlp": 256, "trivial": 2}
MOMENTUM = {"cifar10": 0.0, "resnet20": 0.9, "mlp": 0.9}
LEARNING_RATE = 1e-3
BN_MOMENTUM, BN_EPSILON = 0.9, 1e-5
LRN = {"radius": 4, "bias": 1.0, "alpha": 0.001 / 9.0, "beta": 0.75}
CLASSES, WARM_UP, TRIVIAL_REPEAT = 10, 5, 2000
THREADS = int(os.environ.get("YOKE_BENCH_THREADS", len(os.sched_getaffinity(0))))


def arguments(modes):
    """(model, mode, batch, seconds) of the command line."""
    if not 3 <= len(sys.argv) <= 5 or sys.argv[1] not in BATCHES or sys.argv[2] not in modes:
        sys.exit(f"usage: {sys.argv[0]} {'|'.join(BATCHES)} {'|'.join(modes)} [BATCH [SECONDS]]")
    batch = int(sys.argv[3]) if len(sys.argv) > 3 else BATCHES[sys.argv[1]]
    return sys.argv[1], sys.argv[2], batch, float(sys.argv[4]) if len(sys.argv) > 4 else 3.0


def data(model, batch):
    """The pictures [batch, height, width, channels] in [-0.5, 0.5), and labels."""
    import numpy
    shape = (batch, *SIZES[model])
    images = (numpy.random.default_rng(12345).random(shape) - 0.5).astype(numpy.float32)
    return images, (numpy.arange(batch) % CLASSES).astype(numpy.int32)


def age_ms():
    """Milliseconds since this process was started, as told by whoever did."""
    started = os.environ.get("YOKE_BENCH_STARTED_NS")
    return (time.monotonic_ns() - int(started)) * 1e-6 if started else math.nan


def peak_mib():
    with open("/proc/self/status") as f:
        return next(int(line.split()[1]) / 1024 for line in f if line.startswith("VmHWM:"))


def report(contender, version, model, batch, times, first_ms, loss):
    line = {"contender": contender, "version": version, "model": model, "batch": batch, "threads": THREADS, "steps": len(times),
            "median_ms": statistics.median(times), "min_ms": min(times), "max_ms": max(times), "peak_mib": peak_mib()}
    if not math.isnan(first_ms):
        line["first_step_ms"] = first_ms
    if loss is not None:
        line["loss"] = loss
    print(json.dumps(line))


def measure(contender, version, model, batch, seconds, step):
    times, first_ms, end = [], math.nan, 0.0
    while len(times) < WARM_UP + 1 or time.perf_counter() < end:
        begin = time.perf_counter()
        loss = step()
        times.append((time.perf_counter() - begin) * 1e3)
        if len(times) == 1:
            first_ms = age_ms()
        if len(times) <= WARM_UP:
            end = time.perf_counter() + seconds
    if not math.isfinite(loss):
        sys.exit(f"{contender}: the loss is not finite")
    report(contender, version, model, batch, times[WARM_UP:], first_ms, loss)


def measure_trivial(contender, version, batch, seconds, call, done):
    """`call` does y = x*2 + 1 once; `done` waits for what it returned."""
    done(call())
    first_ms = age_ms()
    for _ in range(WARM_UP):
        done(call())
    times, end = [], time.perf_counter() + seconds
    while not times or time.perf_counter() < end:
        begin = time.perf_counter()
        for _ in range(TRIVIAL_REPEAT):
            y = call()
        done(y)
        times.append((time.perf_counter() - begin) * 1e3 / TRIVIAL_REPEAT)
    report(contender, version, "trivial", batch, times, first_ms, None)
