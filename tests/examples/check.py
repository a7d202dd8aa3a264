#!/usr/bin/env python3
"""Run the example programs and check what they print.

usage: check.py BUILD_DIR
"""
import pathlib
import re
import subprocess
import sys

build = pathlib.Path(sys.argv[1]) / "examples"


def run(*command):
    done = subprocess.run([str(build / command[0]), *command[1:]], capture_output=True, text=True)
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

out = run("cifar10_multi_device", "2", "3", "8")
losses = [float(x) for x in re.findall(r"loss = ([0-9.]+) \(", out)]
assert len(losses) == 2 and 4.4 < losses[0] < 5.0, out       # ln 10 plus the weight decay of the initial weights: about 4.68
assert re.search(r"step 2, loss = \d+\.\d\d \(\d+\.\d examples/sec; \d+\.\d{3} sec/batch\)", out), out
print("examples print what they should")
