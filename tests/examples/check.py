#!/usr/bin/env python3
"""Run the example programs and check what they print.

usage: check.py BUILD_DIR
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

env = {k: v for k, v in os.environ.items() if not k.startswith(("YOKE_", "CUDA_"))}
build = pathlib.Path(sys.argv[1]) / "examples"


def run(*command):
    done = subprocess.run([str(build / command[0]), *command[1:]], capture_output=True, text=True, env=env)
    assert done.returncode == 0, f"{command}: exit status {done.returncode}: {done.stderr}"
    return done.stdout


out = run("shared_variable")
lines = out.splitlines()
assert lines[0] == "Device mapping:", out
assert "same variable: yes" in lines, out
assert "ccc: (Variable): /job:localhost/replica:0/task:0/device:CPU:0" in lines, out
assert "Mul: (Mul): /job:localhost/replica:0/task:0/device:GPU:0" in lines, out
assert lines[-2] == " ".join(["2.0"] * 24), out
assert lines[-1] == " ".join(["4.0"] * 24), out

out = run("device_placement")
lines = out.splitlines()
assert lines[0] == "Device mapping:", out
for i in range(2):
    assert re.fullmatch(rf"/job:localhost/replica:0/task:0/device:GPU:{i} -> device: {i}, name: .+, pci bus id: virtual:{i}, "
                        "compute capability: none", lines[1 + i]), out
for op in ("a: (Const)", "b: (Const)", "MatMul: (MatMul)"):
    assert f"{op}: /job:localhost/replica:0/task:0/device:GPU:1" in lines, out
assert lines[-1] == "[[22 28] [49 64]]", out
assert run("device_placement", "/cpu:0").splitlines()[-1] == "[[22 28] [49 64]]"
refused = subprocess.run([str(build / "device_placement"), "/gpu:2"], capture_output=True, text=True, env=env)
assert refused.returncode == 1 and refused.stdout == "", refused
for word in ("'a'", "Const", "device_placement.c:", "/device:GPU:2", "no such device", "device:CPU:0", "device:GPU:1", "soft placement"):
    assert word in refused.stderr, (word, refused.stderr)

out = run("cifar10_multi_device", "2", "3", "8")
losses = [float(x) for x in re.findall(r"loss = ([0-9.]+) \(", out)]
assert len(losses) == 2 and 4.4 < losses[0] < 5.0, out       # ln 10 plus the weight decay of the initial weights: about 4.68
assert re.search(r"step 2, loss = \d+\.\d\d \(\d+\.\d examples/sec; \d+\.\d{3} sec/batch\)", out), out
lines = run("sync_replicas", "20", "2", "8").splitlines()
for line, total, steps in zip(lines, (2, 3), (40, 40)):
    m = re.fullmatch(rf"2 of {total} replicas: loss (\d+\.\d{{3}}), 20 updates, \d+\.\d updates/s, (\d+) worker steps, (\d+) dropped", line)
    assert m and float(m[1]) < 6 and int(m[2]) >= steps, lines
    assert total == 3 or (int(m[2]) == 40 and int(m[3]) == 0), lines       # all of them count; with a backup it depends on the times
assert len(lines) == 2, lines


def history(text):
    return {name: (float(a), float(b)) for name, a, b in re.findall(r"^(\w+): (\d+\.\d+) -> (\d+\.\d+)$", text, re.M)}


one, three = history(run("multi_output", "1")), history(run("multi_output", "3"))
assert list(one) == list(three), (one, three)          # names are those of the outputs, whatever the devices
for name in ("loss", "main_output_loss", "aux_output_loss", "main_output_accuracy"):
    assert name in one and "val_" + name in one, one
    assert all(abs(a - b) <= 2e-3 for a, b in zip(one[name], three[name])), (name, one, three)
assert one["val_main_output_accuracy"][1] >= 0.9, one

with tempfile.TemporaryDirectory() as folder:
    file = f"{folder}/figures.h5"
    out = run("parallel_model", "3", "2", "640", file)
    assert out.startswith("Train on 640 samples, validate on 160 samples\nEpoch 1/2\n"), out
    best = min(float(x) for x in re.findall(r"val_loss: (\d+\.\d+)", out))
    m = re.fullmatch(r".*figures\.h5 on one device: loss (\d+\.\d{4}), accuracy (\d\.\d{4})", out.splitlines()[-1])
    assert m and abs(float(m[1]) - best) <= 2e-4, out  # what four devices saved is what one device has

    side_by_side = False
    for _ in range(20):                                # on a machine with other work the branches may have to take turns
        out = run("shared_lstm", "4", "32", f"{folder}/trace.json").splitlines()
        m = re.fullmatch(r"gradients of two devices and of one differ by (\S+)", out[0])
        assert m and float(m[1]) <= 1e-5, out
        losses = [float(re.fullmatch(r"step \d: loss (\d\.\d{4})", line)[1]) for line in out[1:]]
        assert len(losses) == 4 and losses == sorted(losses, reverse=True), out
        events = [e for e in json.load(open(f"{folder}/trace.json"))["traceEvents"] if e["ph"] == "X" and e["name"].startswith("LSTM")]
        branch = [[(e["ts"], e["ts"] + e["dur"]) for e in events if e["pid"] == pid] for pid in (1, 2)]      # process 1 is gpu:0, 2 gpu:1
        assert len(branch[0]) == len(branch[1]) == 8, events           # forwards and backwards, in each step
        side_by_side = any(a < d and c < b for a, b in branch[0] for c, d in branch[1])
        if side_by_side:
            break
    assert side_by_side, branch
    file = f"{folder}/detector.h5"
    started = time.monotonic()
    out = run("two_stage_detector", "800", file).splitlines()
    seconds = time.monotonic() - started
    scores = [[float(x) for x in re.fullmatch(r"recall (\d\.\d{4}), mAP (\d\.\d{4}) in 200 other scenes", line).groups()] for line in out[-2:]]
    assert len(out) == 10 and scores[0] == scores[1], out              # what the file restored finds the same, with both parts
    assert scores[0][0] >= 0.9 and scores[0][1] >= 0.6, out
    print(f"two_stage_detector: recall {scores[0][0]}, mAP {scores[0][1]} in {seconds:.0f} s")
print("examples print what they should")
