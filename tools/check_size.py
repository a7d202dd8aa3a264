#!/usr/bin/env python3
"""Measure files and functions; print the total of src/.

A file should have at most 600 lines and a function at most 60: beyond that it is printed. Beyond 1000 and 120 the
check fails, unless tools/size_allow.txt lists it; an entry that is no longer needed fails too.
"""
import json
import pathlib
import subprocess
import sys

FILE_SOFT, FILE_HARD, FUNCTION_SOFT, FUNCTION_HARD = 600, 1000, 60, 120
ROOTS = ["src", "plugins", "include", "tests", "examples"]
ALLOW = pathlib.Path("tools/size_allow.txt")


def allowed():
    lines = ALLOW.read_text().splitlines() if ALLOW.exists() else []
    return {line.split("#")[0].strip() for line in lines} - {""}


def functions(files):
    """(file, name, first line, lines) of every function, by ctags."""
    if not files:
        return
    run = subprocess.run(["ctags", "--languages=C", "--kinds-C=f", "--fields=+ne", "--output-format=json", "-L", "-"],
                         input="\n".join(map(str, files)), capture_output=True, text=True, check=True)
    for line in run.stdout.splitlines():
        tag = json.loads(line)
        if "end" in tag:
            yield tag["path"], tag["name"], tag["line"], tag["end"] - tag["line"] + 1


def main():
    files = sorted(f for root in ROOTS for f in pathlib.Path(root).rglob("*") if f.suffix in (".c", ".h", ".cu", ".def"))
    allow, used, bad, long_ones, total = allowed(), set(), 0, 0, 0
    found = []
    for f in files:
        lines = len(f.read_text(errors="replace").splitlines())
        total += lines if f.parts[0] == "src" else 0
        found.append((str(f), f"{f}: {lines} lines", lines, FILE_SOFT, FILE_HARD))
    for path, name, line, lines in functions(files):
        found.append((f"{path}:{name}", f"{path}:{line}: {name}() has {lines} lines", lines, FUNCTION_SOFT, FUNCTION_HARD))
    for key, text, lines, soft, hard in found:
        if lines <= soft:
            continue
        if key in allow:
            used.add(key)
        elif lines > hard:
            print(f"{text}: at most {hard}")
            bad += 1
        else:
            print(f"{text} (aim for {soft})")
            long_ones += 1
    for key in sorted(allow - used):
        print(f"{ALLOW}: {key} needs no entry")
        bad += 1
    print(f"size: src/ has {total} lines; {long_ones} files or functions longer than aimed for, {bad} errors")
    return bad > 0


if __name__ == "__main__":
    sys.exit(main())
