#!/usr/bin/env python3
"""The rules of style that a script can check. Comments and strings are blanked out before looking at code.

Exemptions are in the table below: file, rule, and how many times. One that is not used up fails, so the table stays true.
"""
import pathlib
import re
import sys

AIM_COLUMNS, MAX_COLUMNS = 130, 150
BANNED = "sprintf vsprintf strcpy strcat gets atoi atol atof strtok rand srand alloca".split()
HEAP = "malloc calloc realloc free posix_memalign aligned_alloc strdup strndup".split()
EXEMPT = {  # (file, rule): count
    ("include/yoke/op_attrs.h", "columns"): 7,  # one operation a line
    ("src/base/alloc.c", "heap"): 5,
    ("src/base/child.c", "exit"): 1,  # of the child, not of the caller
    ("src/base/param.c", "getenv"): 4,
}


def blank(text):
    """The same text with comments, strings and character constants replaced by blanks."""
    pattern = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)
    return pattern.sub(lambda m: re.sub(r"[^\n]", " ", m[0]), text)


def calls(line, names):
    for m in re.finditer(r"(?<![\w.>])(" + "|".join(names) + r")\s*\(", line):
        yield m[1]


def first_comment(text, suffix):
    """Why the opening comment is not good enough, or None."""
    m = re.match(r"\s*/\*(.*?)\*/", text, re.S)
    if not m:
        return "does not open with a comment"
    words = re.sub(r"\s*\n\s*\*?\s*", " ", m[1]).strip()
    if suffix == ".def":
        return None
    words = re.sub(r"^\S+\.(c|h|cu) - ", "", words)
    sentences = len(re.findall(r"[.:;?!)](?=\s|$)", words))
    return None if sentences >= 2 else "opens with a comment of fewer than two sentences"


def conditional(lines):
    """Line numbers of #if and friends, but for the include guard and __cplusplus."""
    for n, line in enumerate(lines, 1):
        m = re.match(r"\s*#\s*(if|ifdef|ifndef|elif)\b(.*)", line)
        if not m:
            continue
        guard = m[1] == "ifndef" and re.match(r"\s*#\s*define\s+" + re.escape(m[2].strip()) + r"\b", lines[n] if n < len(lines) else "")
        if not guard and "__cplusplus" not in m[2]:
            yield n


def check_file(path):
    """(rule, line, message) of everything wrong with one file."""
    name, text = str(path), path.read_text(errors="replace")
    code = blank(text).splitlines()
    library = name.startswith(("src/", "plugins/", "include/"))
    why = first_comment(text, path.suffix)
    if why:
        yield "comment", 1, why
    for n, line in enumerate(text.splitlines(), 1):
        if len(line) > MAX_COLUMNS and path.suffix != ".def":
            yield "columns", n, f"{len(line)} columns, aim for {AIM_COLUMNS}, never more than {MAX_COLUMNS}"
        if "\t" in line:
            yield "tab", n, "a tab"
        if line != line.rstrip():
            yield "blank", n, "blanks at the end of the line"
        if re.search(r"\b(TODO|FIXME|XXX|HACK)\b", line):
            yield "todo", n, "unfinished business belongs in an issue"
    if text and not text.endswith("\n"):
        yield "newline", len(code), "no newline at the end"
    for n, line in enumerate(code, 1):
        for f in calls(line, BANNED):
            yield "banned", n, f"{f}() is banned"
        if not library:
            continue
        for f in calls(line, HEAP):
            yield "heap", n, f"{f}(): memory comes from base/alloc.h (backends: host->alloc)"
        for f in calls(line, ["getenv", "secure_getenv"]):
            yield "getenv", n, "the environment is read by base/param.c only"
        if not name.startswith("src/cli/"):
            for f in calls(line, ["exit", "_exit", "abort"]):
                yield "exit", n, f"{f}(): the library never ends the process"
    if library and not name.startswith(("src/base/", "src/backend/", "plugins/", "include/")):
        for n in conditional(text.splitlines()):
            yield "if", n, "#if belongs in src/base or a backend"
    if name.startswith("include/"):
        for n in conditional(text.splitlines()):
            if "__GNUC__" not in text.splitlines()[n - 1]:
                yield "if", n, "#if in a public header"


def main():
    roots = ["src", "plugins", "include", "tests", "examples"]
    files = sorted(f for r in roots for f in pathlib.Path(r).rglob("*") if f.suffix in (".c", ".h", ".cu", ".def"))
    seen, bad = {}, 0
    for path in files:
        for rule, line, message in check_file(path):
            key = (str(path), rule)
            seen[key] = seen.get(key, 0) + 1
            if key not in EXEMPT or seen[key] > EXEMPT[key]:
                print(f"{path}:{line}: {message}")
                bad += 1
    for key, count in EXEMPT.items():
        if seen.get(key, 0) < count:
            print(f"tools/lint_style.py: {key[0]} uses {seen.get(key, 0)} of its {count} exemptions from \"{key[1]}\"")
            bad += 1
    wide = sum(len(line) > AIM_COLUMNS for f in files if f.suffix != ".def" for line in f.read_text(errors="replace").splitlines())
    print(f"style: {len(files)} files, {bad} errors; {wide} lines are wider than {AIM_COLUMNS} columns")
    return bad > 0


if __name__ == "__main__":
    sys.exit(main())
