"""From the lines of all runs to the tables and the comparison with the goals.

`results` is {(contender, model): {round: line}}; a line is what a contender printed. Ratios are formed within a round, where
both ran within the same minute, and their median is taken over the rounds: the machine's speed drifts.
"""
import statistics

import extras

GOAL_PEER = {"cifar10": 1.7, "resnet20": 1.15, "mlp": 1.05, "lstm": 1.0}
GOAL_FLOOR = {"cifar10": 1.2, "resnet20": 1.2, "mlp": 1.2, "lstm": 1.3}
GOAL_TRIVIAL_US, GOAL_MEMORY, GOAL_START_MS, GOAL_SCALING = 2.0, 0.5, 300.0, 0.95
PEERS = ("torch", "tensorflow", "jax")


def values(results, name, model, key="median_ms"):
    return [line[key] for line in results.get((name, model), {}).values() if key in line]


def median(numbers):
    return statistics.median(numbers) if numbers else None


def number(x):
    return f"{x:.0f}" if x >= 100 else f"{x:.1f}" if x >= 10 else f"{x:.2f}" if x >= 0.1 else f"{x:.3f}"


def spread(numbers):
    return f"{number(median(numbers))} ({number(min(numbers))}-{number(max(numbers))})" if numbers else "-"


def ratios(results, model, top, bottom, key="median_ms"):
    a, b = results.get((top, model), {}), results.get((bottom, model), {})
    return [a[r][key] / b[r][key] for r in a if r in b and key in a[r] and key in b[r]]


def names(results, model):
    return [n for n, m in results if m == model]


def fastest_peer(results, model):
    peers = [(median(values(results, n, model)), n) for n in names(results, model) if n.split()[0] in PEERS]
    return min(peers)[1] if peers else None


def table(rows, head):
    """Text table, as Markdown reads it too."""
    rows = [head, *rows]
    width = [max(len(r[i]) for r in rows) for i in range(len(head))]
    lines = ["| " + " | ".join(c.ljust(w) for c, w in zip(r, width)) + " |" for r in rows]
    return "\n".join([lines[0], "|" + "|".join("-" * (w + 2) for w in width) + "|", *lines[1:]])


def contenders_table(results, models):
    rows = []
    for model in models:
        scale, unit = (1000, "us") if model == "trivial" else (1, "ms")
        for name in names(results, model):
            runs = results[name, model]
            versus = ratios(results, model, name, "yoke")
            rows.append([model, name, spread([v * scale for v in values(results, name, model)]) + " " + unit, str(len(runs)),
                         spread(versus) if name != "yoke" else "1", spread(values(results, name, model, "peak_mib")),
                         spread(values(results, name, model, "first_step_ms"))])
    return table(rows, ["model", "contender", "step", "rounds", "times Yoke's", "peak MiB", "start to end of first step, ms"])


def goal(rows, what, numbers, target, more_is_better, form="{}"):
    if not numbers:
        rows.append([what, "not measured", form.format(target), "-"])
        return
    value = median(numbers)
    met = value >= target if more_is_better else value <= target
    rows.append([what, spread(numbers), form.format(target), "yes" if met else "no"])


def goals_table(results, models, checks=None):
    rows = []
    for model in (m for m in models if m != "trivial"):
        peer = fastest_peer(results, model)
        if peer:
            goal(rows, f"{model}: fastest peer ({peer}) / Yoke", ratios(results, model, peer, "yoke"), GOAL_PEER[model], True, ">= {}")
        goal(rows, f"{model}: Yoke / floor", ratios(results, model, "yoke", "floor"), GOAL_FLOOR[model], False, "<= {}")
    for model in (m for m in models if m != "trivial"):
        torch = [(median(values(results, n, model, "peak_mib")), n) for n in names(results, model) if n.startswith("torch")]
        if torch:
            goal(rows, f"{model}: peak memory, Yoke / {min(torch)[1]}", ratios(results, model, "yoke", min(torch)[1], "peak_mib"), GOAL_MEMORY,
                 False, "<= {}")
    if "resnet20" in models:
        goal(rows, "resnet20: start to end of first step, ms", values(results, "yoke", "resnet20", "first_step_ms"), GOAL_START_MS, False, "<= {}")
    for model in (m for m in models if m != "trivial"):
        for two, one in (("yoke gpu:0,gpu:1", "yoke gpu:0"), ("yoke cpu:0,cpu:1", "yoke")):
            if (two, model) in results:
                goal(rows, f"{model}: speed of {two[5:]} / {one[5:] or 'cpu:0'}", ratios(results, model, one, two), GOAL_SCALING, True, ">= {}")
    if "trivial" in models:
        goal(rows, "trivial step, us", [v * 1000 for v in values(results, "yoke", "trivial")], GOAL_TRIVIAL_US, False, "<= {}")
    for name, (what, target, more_is_better) in extras.GOALS.items():
        if name in (checks or {}):
            goal(rows, what, list(checks[name].values()), target, more_is_better, ">= {}" if more_is_better else "<= {}")
    return table(rows, ["what", "median (min-max)", "goal", "met"])
