"""Runs a benchmark program with the given arguments and checks the line of JSON it prints: what CTest does with them."""
import json
import math
import subprocess
import sys

KEYS = {"contender": str, "model": str, "batch": int, "threads": int, "steps": int, "median_ms": float, "min_ms": float, "max_ms": float,
        "first_step_ms": float, "peak_mib": float}


def main():
    run = subprocess.run(sys.argv[1:], capture_output=True, text=True, timeout=240, check=False)
    if run.returncode != 0:
        return f"status {run.returncode}, not 0: {run.stderr}"
    if len(run.stdout.splitlines()) != 1:
        return f"expected one line, got {len(run.stdout.splitlines())}: {run.stdout}"
    line = json.loads(run.stdout)
    if "check" in line:
        bad = [key for key, value in line.items() if key not in ("contender", "check", "cost") and not (math.isfinite(value) and value > 0)]
        print(run.stdout, end="")
        return f"no numbers above 0: {bad}" if bad or len(line) < 5 else 0
    for key, kind in KEYS.items():
        if key not in line or not isinstance(line[key], kind):
            return f"{key} is {line.get(key)!r}, expected a value of type {kind.__name__}"
    if line["model"] != sys.argv[2] or line["steps"] < 1 or line["threads"] < 1 or line["peak_mib"] < 1:
        return f"not plausible: {run.stdout}"
    if not 0 < line["min_ms"] <= line["median_ms"] <= line["max_ms"] or not line["first_step_ms"] > 0:
        return f"times out of order: {run.stdout}"
    if line["contender"] in ("yoke_update", "yoke_reduce") and not (line["bytes"] > 0 and line["share"] > 0):
        return f"no share of the memory's rate: {run.stdout}"
    if line["contender"] == "yoke_long" and not ("growth_mib" in line and line["slower"] > 0 or "cost" in line and line["saves"] >= 2):
        return f"no figures of a long run: {run.stdout}"
    if line["model"] != "trivial" and line["contender"] not in ("yoke_update", "yoke_reduce") and not (math.isfinite(line["loss"]) and 0 < line["loss"] < 20):
        return f"a loss of {line['loss']}: {run.stdout}"
    print(run.stdout, end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
