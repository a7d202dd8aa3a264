#!/usr/bin/env python3
"""Write tests/golden/events/small.tfevents and graph.tfevents with TensorFlow: its messages, its records, its histograms.

usage: make_event_values.py [FOLDER]     (needs tensorflow; the files in the tree are of TensorFlow 2.21)

tests/store/test_summary.c makes the same events with Yoke's writer and expects the same bytes.
"""
import pathlib
import sys

import numpy as np
import tensorflow as tf
from tensorflow.core.framework import graph_pb2, node_def_pb2, summary_pb2, types_pb2
from tensorflow.core.util import event_pb2

WALL = 1500000000.25


def event(step=0, **what):
    return event_pb2.Event(wall_time=WALL, step=step, **what)


def scalar(tag, step, value):
    return event(step, summary=summary_pb2.Summary(value=[summary_pb2.Summary.Value(tag=tag, simple_value=value)]))


def histogram(tag, step, values):
    summary = summary_pb2.Summary.FromString(tf.raw_ops.HistogramSummary(tag=tag, values=values).numpy())
    return event(step, summary=summary)


def text(tag, step, value):
    v = summary_pb2.Summary.Value(tag=tag, tensor=tf.make_tensor_proto(value, dtype=tf.string, shape=()))
    v.metadata.plugin_data.plugin_name = "text"
    return event(step, summary=summary_pb2.Summary(value=[v]))


def write(path, events):
    with tf.io.TFRecordWriter(str(path)) as w:
        for e in events:
            w.write(e.SerializeToString(deterministic=True))


def small():
    session = event_pb2.SessionLog(status=event_pb2.SessionLog.START)
    yield event(7, file_version="brain.Event:2")
    yield event(7, session_log=session)
    yield scalar("loss", 7, 2.5)
    yield scalar("zero", 0, 0.0)
    yield scalar("group/größe", -3, -1e-30)
    yield scalar("nan", 1 << 40, float("nan"))
    yield scalar("inf", 8, float("inf"))
    yield scalar("inf", 9, float("-inf"))
    yield histogram("none", 1, np.zeros([0], np.float32))
    yield histogram("one", 1, np.float32(1))
    yield histogram("zeros", 1, np.zeros([3, 2], np.float32))
    yield histogram("ramp", 2, np.array([(i - 500) * 0.01 for i in range(1000)], np.float64))
    yield histogram("tiny", 3, np.array([1e-12, -1e-12, 1e-13, 9e-13, 1.1e-12, 1e-300], np.float64))
    yield histogram("huge", 3, np.array([1e20, -1e20, 1e19, 3e38, -3e38, 1e-3], np.float64))
    yield histogram("powers", 4, np.array([(-1.0) ** i * 2.0 ** (i - 40) for i in range(100)], np.float64))
    yield histogram("whole", 5, np.array([[-7, 0, 1], [2, 3, 1000000]], np.int32))
    yield text("note", 6, "a *text*, größer")


def node(name, op, inputs, shape, device="", t=types_pb2.DT_FLOAT, **attrs):
    n = node_def_pb2.NodeDef(name=name, op=op, input=inputs, device=device)
    if t:
        n.attr["T"].type = t
    n.attr["_output_shapes"].list.SetInParent()
    for s in shape:
        added = n.attr["_output_shapes"].list.shape.add()
        for d in s:
            added.dim.add(size=d)
    for key, value in attrs.items():
        n.attr[key].CopyFrom(value)
    return n


def attr(**what):
    return tf.compat.v1.AttrValue(**what)


def ints(*values):
    return attr(list=tf.compat.v1.AttrValue.ListValue(i=values))


def graph():
    content = np.array([[1, 2, 3], [4, 5, 6]], np.float32).tobytes()
    value = tf.make_tensor_proto(np.zeros([2, 3], np.float32))
    value.ClearField("float_val")
    value.tensor_content = content
    yield event(0, file_version="brain.Event:2")
    g = graph_pb2.GraphDef(node=[
        node("x", "Placeholder", [], [[-1, 2]], "/device:CPU:0", dim=ints(-1, 2), dtype=attr(type=types_pb2.DT_FLOAT), rank=attr(i=2)),
        node("w", "Const", [], [[2, 3]], value=attr(tensor=value)),
        node("layer/MatMul", "MatMul", ["x", "w"], [[-1, 3]], "/device:CPU:0"),
        node("layer/TopKV2", "TopKV2", ["layer/MatMul"], [[-1, 2], [-1, 2]], k=attr(i=2)),
        node("layer/Neg", "Neg", ["layer/TopKV2", "^w"], [[-1, 2]]),
        node("Shape", "Shape", ["layer/TopKV2:1"], [[2]], t=types_pb2.DT_INT64),
        node("done", "NoOp", ["^layer/Neg", "^Shape"], [], t=0),
    ])
    yield event(0, graph_def=g.SerializeToString(deterministic=True))


def main():
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent / "events")
    folder.mkdir(exist_ok=True)
    write(folder / "small.tfevents", small())
    write(folder / "graph.tfevents", graph())


if __name__ == "__main__":
    main()
