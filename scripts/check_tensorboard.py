#!/usr/bin/env python3
"""Read event files with TensorBoard's own readers, and compare what they see with what the run says elsewhere.

usage: check_tensorboard.py [--metrics FILE] [--weights FILE] [--optional] DIR
       check_tensorboard.py --self-test YOKE

DIR is what was given to `yoke train --tensorboard`. Checked are the curves of `train` and `eval` against metrics.jsonl, the last
histograms against weights.safetensors, that the pictures can be decoded, and that the graph is one: names once, inputs there. With
--self-test the command makes a run to be checked. With --optional a missing package is fine. Needs tensorboard and numpy.
"""
import argparse
import json
import pathlib
import struct
import subprocess
import sys
import tempfile
import zlib

try:
    import numpy as np
    from tensorboard.backend.event_processing import event_accumulator
    from tensorboard.backend.event_processing.event_file_loader import EventFileLoader
except ImportError as e:
    np, missing = None, e


def close(a, b):
    return a == b or abs(a - b) <= 1e-6 * max(abs(a), abs(b))


def load(folder):
    guide = {event_accumulator.SCALARS: 0, event_accumulator.HISTOGRAMS: 0, event_accumulator.IMAGES: 0, event_accumulator.TENSORS: 0}
    run = event_accumulator.EventAccumulator(str(folder), size_guidance=guide)
    run.Reload()
    return run


def curve(run, tag):
    return [(s.step, s.value) for s in run.Scalars(tag)]


def compare_curve(run, tag, lines, key, what):
    got, want = curve(run, tag), [(x["step"], x[key]) for x in lines]
    assert [s for s, _ in got] == [s for s, _ in want], f"{what} {tag}: steps {got}, expected {want}"
    for (step, a), (_, b) in zip(got, want):
        assert close(a, b), f"{what} {tag}, step {step}: {a}, expected {b}"
    return len(got)


def check_metrics(train, test, path):
    lines = [json.loads(x) for x in path.read_text().splitlines()]
    progress = [x for x in lines if x["event"] == "progress"]
    tests = [x for x in lines if x["event"] == "evaluation"]
    n = sum(compare_curve(train, tag, progress, tag, "train") for tag in ("loss", "accuracy", "examples_per_second", "epoch"))
    n += sum(compare_curve(test, tag, tests, "test_" + tag, "eval") for tag in ("loss", "accuracy"))
    assert n > 0, "there are no curves"
    return n


def read_safetensors(path):
    raw = path.read_bytes()
    length = struct.unpack("<Q", raw[:8])[0]
    for name, t in json.loads(raw[8:8 + length]).items():
        if name != "__metadata__" and t["dtype"] == "F32":
            begin, end = (8 + length + x for x in t["data_offsets"])
            yield name, np.frombuffer(raw[begin:end], "<f4")


def check_weights(train, path):
    weights, n = dict(read_safetensors(path)), 0
    for tag in train.Tags()["histograms"]:
        h, w = train.Histograms(tag)[-1].histogram_value, weights[tag].astype(np.float64).ravel()
        assert h.num == w.size and h.min == w.min() and h.max == w.max(), f"{tag}: {h.num} from {h.min} to {h.max}"
        assert np.isclose(h.sum, w.sum(), rtol=1e-9, atol=1e-9) and np.isclose(h.sum_squares, (w * w).sum()), f"{tag}: sums"
        assert sum(h.bucket) == w.size, f"{tag}: {sum(h.bucket)} in buckets"
        below = 0
        for limit, count in zip(h.bucket_limit, h.bucket):
            below += count
            assert below == (w < limit).sum(), f"{tag}: {below} below {limit}, expected {(w < limit).sum()}"
        n += 1
    assert n > 0, "there are no histograms"
    return n


def decode_png(raw):
    """(width, height, channels, pixels) of a PNG of 8 bits without interlacing whose rows are stored as they are."""
    assert raw[:8] == b"\x89PNG\r\n\x1a\n", "no PNG"
    at, data, head = 8, b"", None
    while at < len(raw):
        n, kind = struct.unpack(">I4s", raw[at:at + 8])
        body = raw[at + 8:at + 8 + n]
        assert struct.unpack(">I", raw[at + 8 + n:at + 12 + n])[0] == zlib.crc32(kind + body), f"the checksum of {kind} is wrong"
        head = body if kind == b"IHDR" else head
        data += body if kind == b"IDAT" else b""
        at += 12 + n
    width, height, bits, color = struct.unpack(">IIBB", head[:10])
    channels = {0: 1, 2: 3, 6: 4}[color]
    rows = zlib.decompress(data)
    row = width * channels + 1
    assert bits == 8 and len(rows) == row * height and all(rows[y * row] == 0 for y in range(height)), "the rows are odd"
    return width, height, channels, b"".join(rows[y * row + 1:(y + 1) * row] for y in range(height))


def check_images(train):
    tags = train.Tags()["images"]
    for tag in tags:
        for image in train.Images(tag):
            width, height, _, pixels = decode_png(image.encoded_image_string)
            assert (image.width, image.height) == (width, height), f"{tag}: {image.width}x{image.height}, the picture is {width}x{height}"
            assert len(set(pixels)) > 1, f"{tag}: the picture is one colour"
    return len(tags)


def check_graph(train):
    g = event_accumulator.graph_pb2.GraphDef.FromString(train._graph) if hasattr(event_accumulator, "graph_pb2") else train.Graph()
    seen = set()
    for n in g.node:
        assert n.name and n.name not in seen, f"there are two nodes {n.name!r}"
        seen.add(n.name)
        assert n.op and n.device and "_output_shapes" in n.attr, f"{n.name}: no operation, device or shapes"
    for n in g.node:
        for i in n.input:
            assert i.lstrip("^").split(":")[0] in seen, f"{n.name}: the input {i} is no node"
    assert len(seen) > 0, "the graph is empty"
    return len(seen)


def check_files(folder):
    """Every record, with the newer reader too."""
    n = 0
    for path in sorted(folder.glob("*/events.out.tfevents.*")):
        events = list(EventFileLoader(str(path)).Load())
        assert events and events[0].file_version == "brain.Event:2", f"{path}: {len(events)} events"
        n += len(events)
    assert n > 0, f"{folder} has no event files"
    return n


def check(folder, metrics, weights):
    events = check_files(folder)
    train, test = load(folder / "train"), load(folder / "eval")
    points = check_metrics(train, test, metrics) if metrics else 0
    histograms = check_weights(train, weights) if weights else 0
    text = train.Tensors("settings")[0].tensor_proto.string_val[0].decode()
    assert json.loads(text.split("```")[1][4:])["model"], "the settings are odd"
    print(f"{folder}: {events} events; {points} points of curves and {histograms} histograms as they should be, "
          f"{check_images(train)} pictures, {check_graph(train)} nodes")


def self_test(yoke):
    with tempfile.TemporaryDirectory() as name:
        out, logs = pathlib.Path(name) / "run", pathlib.Path(name) / "logs"
        subprocess.run([yoke, "train", "cifar10", "--steps", "6", "--batch", "16", "--interval", "0", "--out", out, "--tensorboard", logs,
                        "--virtual-gpus", "2:256MiB", "--quiet"], check=True)
        check(logs, out / "metrics.jsonl", out / "weights.safetensors")


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--metrics", type=pathlib.Path)
    p.add_argument("--weights", type=pathlib.Path)
    p.add_argument("--optional", action="store_true")
    p.add_argument("--self-test", metavar="YOKE")
    p.add_argument("path", type=pathlib.Path, nargs="?")
    a = p.parse_args()
    if np is None:
        print(f"a package is not there: {missing}")
        sys.exit(0 if a.optional else 1)
    if a.self_test:
        self_test(a.self_test)
    else:
        check(a.path, a.metrics, a.weights)


if __name__ == "__main__":
    main()
