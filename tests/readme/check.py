#!/usr/bin/env python3
"""Compile the README's C program as printed, run it, and check what it prints; it must be the example too.

usage: check.py SOURCE_DIR BUILD_DIR
"""
import pathlib
import re
import subprocess
import sys
import tempfile

source, build = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
program = re.search(r"```c\n(.*?)```", (source / "README.md").read_text(), re.S)
assert program, "README.md has no C program"
text = program[1]
assert len(text.splitlines()) < 40, f"the README's program has {len(text.splitlines())} lines, 40 is too many"
assert (source / "examples/first.c").read_text().endswith(text), "examples/first.c is not the README's program"
with tempfile.TemporaryDirectory() as tmp:
    c, exe = pathlib.Path(tmp, "first.c"), pathlib.Path(tmp, "first")
    c.write_text(text)
    subprocess.run(["cc", "-std=c11", "-Wall", "-Wextra", "-Werror", f"-I{source}/include", str(c), f"-L{build}", "-lyoke",
                    f"-Wl,-rpath,{build}", "-o", str(exe)], check=True)
    out = subprocess.run([str(exe)], check=True, capture_output=True, text=True).stdout
assert out == "loss 0.000000, w 2.000, b 1.000\n", f"the README's program printed {out!r}"
print("the README's program compiles as printed and fits its line")
