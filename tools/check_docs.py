#!/usr/bin/env python3
"""Every public declaration has a comment: above it, on its line, or above the block of lines it stands in.

A block is a run of lines without a blank one. A comment on the members of a struct or an enum will do as well. Looked at
are functions, struct and enum types and function types of include/yoke; macros too, unless they only wrap the function of
the same name. And every decision in docs/decisions has a number of its own, the same in its name and its title.
"""
import pathlib
import re
import sys

DECLARES = re.compile(r"^(?!\s)(?:typedef\b.*|enum\b.*\{.*|struct\s+\w+\s*\{.*|(?:const\s+)?[\w]+[\s*]+(?:const\s*\*?\s*)*\**(yk_\w+)\s*\(.*)")
MACRO = re.compile(r"^#define\s+(YK_\w+|yk_\w+)(\(.*?\))?\s*(.*)")
FORWARD = re.compile(r"^typedef struct (\w+) \1;")


def blocks(lines):
    """(first line number, lines) of each run without a blank line outside braces."""
    run, first, depth = [], 1, 0
    for n, line in enumerate(lines, 1):
        if not line.strip() and depth == 0:
            if run:
                yield first, run
            run = []
            continue
        if not run:
            first = n
        run.append(line)
        code = re.sub(r"/\*.*?\*/|\"[^\"]*\"", "", line)
        if not line.startswith("#") and 'extern "C"' not in line and line != "}":
            depth = max(0, depth + code.count("{") - code.count("}"))
    if run:
        yield first, run


def name_of(line):
    m = MACRO.match(line)
    if m:
        guard = not m[2] and not m[3]
        wraps = f"{m[1]}_at(" in line
        return None if guard or wraps or m[1].startswith("YK__") else m[1]
    m = DECLARES.match(line)
    if not m or FORWARD.match(line):
        return None
    return m[1] or line.split("{")[0].strip()


def body_comment(block, k):
    """Is there a comment between the braces, or on the continued lines, that begin in line k of a block?"""
    depth = 0
    for line in block[k:]:
        if "/*" in line:
            return True
        depth += line.count("{") - line.count("}")
        if depth <= 0 and not line.endswith("\\") and (";" in line or not line.rstrip().endswith(",")):
            return False
    return False


def decisions():
    """How many decisions share a number with another one, or have another one in their title."""
    seen, bad = {}, 0
    for path in sorted(pathlib.Path("docs/decisions").glob("*.md")):
        number, title = path.name[:4], path.read_text().split("\n", 1)[0]
        if number in seen:
            print(f"{path}: {seen[number]} has this number too")
            bad += 1
        if not title.startswith(f"# {int(number)}. "):
            print(f"{path}: the title is '{title}', expected '# {int(number)}. ...'")
            bad += 1
        seen[number] = path.name
    return bad


def main():
    bad = total = 0
    for header in sorted(pathlib.Path("include/yoke").glob("*.h")):
        lines = header.read_text().splitlines()
        previous_is_comment = False
        for first, block in blocks(lines):
            commented = previous_is_comment
            for k, line in enumerate(block):
                if "/*" in line or line.lstrip().startswith("*"):
                    commented = True
                name = name_of(line)
                if not name:
                    continue
                total += 1
                if not commented and not body_comment(block, k):
                    print(f"{header}:{first + k}: {name} has no comment")
                    bad += 1
            previous_is_comment = block[-1].rstrip().endswith("*/") and not any(map(name_of, block))
    print(f"docs: {total} public declarations, {bad} without a comment")
    return bad + decisions() > 0


if __name__ == "__main__":
    sys.exit(main())
