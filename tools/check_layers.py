#!/usr/bin/env python3
"""Fail if a source file includes a header of a layer it may not see.

The table below is the architecture: a layer may include the layers listed for it, itself, and the public
headers. Backends and examples may include public headers only. The table must have no cycle.
"""
import pathlib
import re
import sys

MAY = {  # layer -> layers it may include
    "base": "",
    "doctor": "base",
    "tensor": "base",
    "device": "base tensor",
    "comm": "base device",
    "op": "base tensor device ops",  # ops: only the list, ops/ops.def
    "graph": "base tensor op",
    "ops": "base tensor op graph",
    "autodiff": "base tensor op graph",
    "plan": "base tensor device op graph ops",  # ops: only the table of fusions
    "run": "base tensor device op graph plan comm",
    "data": "base tensor",
    "store": "base tensor op graph run",
    "train": "base tensor op graph autodiff run store data",
    "detect": "base tensor graph",
    "model": "base tensor op graph autodiff run store data train",
    "keras": "base tensor op graph run store data train model",
    "measure": "base device run",
    "cli": "base doctor measure op device plan run store data train model keras",
    "backend": "",
}
ONLY = {("op", "ops"): "ops.def", ("plan", "ops"): "fusions.h"}  # (layer, included layer) -> the one file it may take from there


def included(line):
    """(layer or folder, rest) of a quoted include, or None; ("<>", header) for an angled one."""
    m = re.match(r'\s*#\s*include\s+([<"])([^>"]+)[>"]', line)
    if not m:
        return None
    if m[1] == "<":
        return "<>", m[2]
    path = m[2]
    while path.startswith("../"):
        path = path[3:]
    head, _, rest = path.partition("/")
    return (head, rest) if rest else (None, head)


def check(root):
    bad = []
    for f in sorted(root.rglob("*")):
        if f.suffix not in (".c", ".h", ".cu", ".def", ".inc") or not f.is_file():
            continue
        me = f.relative_to(root).parts[0]
        if me not in MAY:
            bad.append(f"{f}: folder {me}/ is not in the table of layers")
            continue
        for n, line in enumerate(f.read_text(errors="replace").splitlines(), 1):
            inc = included(line)
            if not inc or inc[0] in (None, "<>", me):
                continue
            layer, rest = inc
            if layer not in MAY:
                if me == "backend" and (f.parent / layer).exists():
                    continue
                bad.append(f"{f}:{n}: {layer}/ is not a layer")
            elif layer not in MAY[me].split():
                bad.append(f"{f}:{n}: {me}/ may not include {layer}/")
            elif ONLY.get((me, layer), rest) != rest:
                bad.append(f"{f}:{n}: {me}/ may include nothing of {layer}/ but {ONLY[me, layer]}")
    return bad


def check_examples(root):
    return [f"{f}:{n}: an example includes public headers only"
            for f in sorted(root.glob("*.c"))
            for n, line in enumerate(f.read_text().splitlines(), 1)
            if re.match(r'\s*#\s*include\s+"(base|tensor|device|op|ops|graph|plan|run|train|model)/', line)]


def cycles():
    def walk(layer, path):
        if layer in path:
            raise SystemExit("the table of layers has a cycle: " + " -> ".join(path + [layer]))
        for below in MAY[layer].split():
            if (layer, below) not in ONLY:
                walk(below, path + [layer])
    for layer in MAY:
        walk(layer, [])


def main():
    top = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    cycles()
    bad = check(top / "src") + check_examples(top / "examples")
    print("\n".join(bad) if bad else "layers: every include is allowed")
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main())
