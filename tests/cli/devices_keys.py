"""devices_keys.py PAGE FILE...: do the keys that `yoke devices --json` printed and the list in docs/devices.md agree?

Each file holds one object a line. Every key must be in the list, and every key of the list must be in one of the files.
"""
import json
import re
import sys


def documented(page):
    """The first column of the tables below the heading, up to the next one."""
    section = open(page).read().split("## `yoke devices --json`", 1)[1].split("\n## ", 1)[0]
    return set(re.findall(r"^\| `([^`]+)` \|", section, re.M))


def keys(value, at=""):
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from keys(inner, f"{at}.{key}" if at else key)
    elif isinstance(value, list):
        for inner in value:
            yield from keys(inner, at + "[]")
    else:
        yield at


def objects(path):
    decoder, text, at = json.JSONDecoder(), open(path).read(), 0
    while text[at:].strip():
        at += len(text[at:]) - len(text[at:].lstrip())
        value, at = decoder.raw_decode(text, at)
        yield value


def main():
    want, seen, bad = documented(sys.argv[1]), set(), []
    for path in sys.argv[2:]:
        for value in objects(path):
            if value.get("version") != 1:
                bad.append(f"{path}: version {value.get('version')}")
            seen |= set(keys(value))
    bad += [f"printed, but not in the list: {k}" for k in sorted(seen - want)]
    bad += [f"in the list, but printed nowhere: {k}" for k in sorted(want - seen)]
    print("\n".join(bad) or f"{len(want)} keys")
    return bool(bad) or len(want) < 20


if __name__ == "__main__":
    sys.exit(main())
