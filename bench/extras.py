"""What is asked of Yoke beside the time of a step: updates, checkpoints, input, layers, branches, files, long runs, predictions.

A check is a function that runs programs and returns numbers by name; GOALS says what is asked of each number. They take part in the
rounds of bench/run as the contenders do, and their lines stand in the table of goals.
"""

UPDATES = ("adam", "momentum", "lamb")
REDUCED = ("2", "4", "cpu2", "cpu4")
PREDICTED = ("cifar10", "resnet20", "mlp")

# name: (what the table says, the limit, is more better)
GOALS = {
    **{f"update {o}": (f"{o} on 25 million parameters: bytes/s, of what memory does", 0.8, True) for o in UPDATES},
    **{f"all-reduce {d}": (f"all-reduce of 100 MB, {d.replace('cpu', '')} {'CPU devices' if 'cpu' in d else 'virtual GPUs'}: bytes/s, of a copy's",
                           0.8, True) for d in REDUCED},
    "checkpoint": ("cifar10: cost of a checkpoint every 100 steps", 0.02, False),
    "input": ("resnet20: part of the step that takes its input", 0.01, False),
    "layers": ("mlp, batch 256: what layers and fit add to a step of the graph", 0.01, False),
    "branches": ("LSTM: two branches on two devices of one core, of one such device", 1.8, True),
    "branches apart": ("LSTM: the same, of what two programs with a core and a branch each gain", 0.97, True),
    "load": ("100 MB .h5: time to load it, of the time to read its bytes", 1.5, False),
    "growth": ("10,000 steps: resident memory gained after the first 2,000, MiB", 1.0, False),
    "slower": ("10,000 steps: step time after them, of that of a fresh session in turn", 1.05, False),
    **{f"predicted {m}": (f"{m} on 2 GPUs: predicted step time, off by", 0.15, False) for m in PREDICTED},
}


def updates(run, programs, seconds, quick):
    for o in UPDATES:
        yield f"update {o}", run([str(programs / "yoke_update"), o, "1" if quick else "25", str(seconds)])["share"]


def reductions(run, programs, seconds, quick):
    for d in REDUCED:
        yield f"all-reduce {d}", run([str(programs / "yoke_reduce"), d, "1" if quick else "100", str(seconds)])["share"]


def checkpoints(run, programs, seconds, quick):
    every = "3" if quick else "100"
    yield "checkpoint", run([str(programs / "yoke_long"), "checkpoint", every, str(seconds if quick else max(seconds, 30))])["cost"]


def long_run(run, programs, seconds, quick):
    line = run([str(programs / "yoke_long"), "steady", "100" if quick else "10000"])
    yield "growth", line["growth_mib"]
    yield "slower", line["slower"]


def input_wait(run, programs, seconds, quick):
    result = run([str(programs.parent / "yoke"), "bench", "resnet20", "--devices", "cpu:0", "--steps", "2" if quick else "10", "--json"])["results"][0]
    yield "input", max(d["input_ms"] for d in result["split"]) / result["traced_ms"]


def layers(run, programs, seconds, quick):
    yield "layers", run([str(programs / "yoke_layers"), "64" if quick else "256", str(seconds if quick else max(seconds, 20))])["cost"]


def branches(run, programs, seconds, quick):
    line = run([str(programs / "yoke_branches"), "4" if quick else "64", str(seconds if quick else max(seconds, 20))])
    yield "branches", line["speedup"]
    yield "branches apart", line["speedup"] / line["apart_speedup"]


def load(run, programs, seconds, quick):
    yield "load", run([str(programs / "yoke_load"), "1" if quick else "100", str(seconds)])["ratio"]


def predictions(run, programs, seconds, quick):
    """Plan, measure, plan: the machine drifts, so the plan is the mean of one before and one after."""
    yoke, two = str(programs.parent / "yoke"), ["--virtual-gpus", "2", "--json"]
    for m in PREDICTED:
        plan = [yoke, "plan", m, *two]
        before = run(plan)["step_ms"]
        measured = run([yoke, "bench", m, "--devices", "2", "--steps", "3" if quick else "20", *two])["results"][0]["step_ms"]
        yield f"predicted {m}", abs((before + run(plan)["step_ms"]) / 2 / measured - 1)


CHECKS = {"updates": updates, "reductions": reductions, "checkpoints": checkpoints, "input": input_wait, "layers": layers,
          "branches": branches, "load": load, "long": long_run, "predictions": predictions}
