#!/usr/bin/env python3
"""Write detect_values.txt: object detection as torchvision, PyTorch and pycocotools do it, for test_detect.c of this folder.

    python3 -m venv venv && venv/bin/pip install torch torchvision pycocotools
    venv/bin/python make_detect_values.py > detect_values.txt

Boxes are (y1, x1, y2, x2), codes (dy, dx, dh, dw), as Yoke has them; what torchvision wants the other way round is turned round.
Format, an array a line: <name> <dims, with x between> <values>. Arrays of one case have one prefix:
    code: boxes and anchors, encoded; codes, decoded (some of them beyond the limit)                    BoxCoder
    match: boxes, truth with an empty row at the end; label = 1 + number of the truth, 0, -1            Matcher
    loss: logits, codes, label, target, the value and its gradients                                      cross_entropy, smooth_l1_loss
    choose: logits, codes, anchors, and what is left of two pictures of 30 x 40                          batched_nms
    score: boxes, scores, classes of what is found and of what is there; AP and recall of each class     COCOeval
"""
import contextlib
import io

import numpy as np
import torch
import torch.nn.functional as F
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval
from torchvision.models.detection._utils import BoxCoder, Matcher
from torchvision.ops import batched_nms, box_iou, clip_boxes_to_image

rng = np.random.default_rng(7)
FLIP = [1, 0, 3, 2]


def put(name, array):
    a = np.asarray(array.detach() if isinstance(array, torch.Tensor) else array, np.float64)
    print(name, "x".join(str(n) for n in a.shape) or "1", " ".join(f"{v:.9g}" for v in a.ravel()))


def some_boxes(*shape, side=64):
    corner, size = rng.uniform(0, side * 0.7, (*shape, 2)), rng.uniform(side / 12, side / 3, (*shape, 2))
    return torch.tensor(np.concatenate([corner, corner + size], -1), dtype=torch.float32)


def xy(boxes):
    return boxes[..., FLIP]


def coding():
    coder = BoxCoder((10.0, 10.0, 5.0, 5.0))
    boxes, anchors = some_boxes(12), some_boxes(12)
    codes = torch.tensor(rng.normal(0, 2, (12, 4)), dtype=torch.float32)
    codes[3, 2] = 40
    codes[7, 3] = 25
    put("code_boxes", boxes)
    put("code_anchors", anchors)
    put("code_encoded", xy(coder.encode([xy(boxes)], [xy(anchors)])[0]))
    put("code_codes", codes)
    put("code_decoded", xy(coder.decode_single(xy(codes), xy(anchors))))


def matching():
    truth, boxes = some_boxes(2, 4), some_boxes(90)
    boxes[:30] = truth[0, 0] + torch.tensor(rng.normal(0, 2.5, (30, 4)), dtype=torch.float32)
    boxes[30:50] = truth[1, 2] + torch.tensor(rng.normal(0, 2.5, (20, 4)), dtype=torch.float32)
    truth[0, 3] = truth[1, 3] = 0
    put("match_boxes", boxes)
    put("match_truth", truth)
    for name, matcher in (("low", Matcher(0.5, 0.5, False)), ("best", Matcher(0.7, 0.3, True))):
        labels = []
        for t in truth:
            m = matcher(box_iou(xy(t[:3]), xy(boxes)))
            labels.append(torch.where(m >= 0, m + 1, torch.where(m == Matcher.BELOW_LOW_THRESHOLD, 0, -1)))
        put(f"match_{name}", torch.stack(labels))


def loss():
    logits = torch.tensor(rng.normal(0, 2, (2, 9, 4)), dtype=torch.float32, requires_grad=True)
    codes = torch.tensor(rng.normal(0, 1.5, (2, 9, 4)), dtype=torch.float32, requires_grad=True)
    target = torch.tensor(rng.normal(0, 1.5, (2, 9, 4)), dtype=torch.float32)
    label = torch.tensor(rng.integers(-1, 4, (2, 9)))
    target[label <= 0] = 0
    counts = (label >= 0).sum()
    kind = F.cross_entropy(logits.reshape(-1, 4), label.reshape(-1), ignore_index=-1, reduction="sum")
    place = F.smooth_l1_loss(codes[label > 0], target[label > 0], reduction="sum", beta=1.0)
    value = (kind + place) / counts
    value.backward()
    for name, array in (("logits", logits), ("codes", codes), ("label", label), ("target", target), ("value", value),
                        ("dlogits", logits.grad), ("dcodes", codes.grad)):
        put("loss_" + name, array)


def choose():
    coder, most = BoxCoder((10.0, 10.0, 5.0, 5.0)), 6
    logits = torch.tensor(rng.normal(0, 1.2, (2, 25, 4)), dtype=torch.float32)
    codes = torch.tensor(rng.normal(0, 0.5, (2, 25, 4)), dtype=torch.float32)
    anchors = some_boxes(2, 25, side=40)
    put("choose_logits", logits)
    put("choose_codes", codes)
    put("choose_anchors", anchors)
    boxes, scores, kinds, count = np.zeros((2, most, 4)), np.zeros((2, most)), np.zeros((2, most)), []
    for i in range(2):
        p = F.softmax(logits[i], -1)[:, 1:]
        b = clip_boxes_to_image(coder.decode_single(xy(codes[i]), xy(anchors[i])), (30, 40))
        b, s, k = b[:, None].expand(-1, 3, 4).reshape(-1, 4), p.reshape(-1), torch.arange(3).repeat(25)
        fits = (s > 0.3) & (b[:, 2] > b[:, 0]) & (b[:, 3] > b[:, 1])
        b, s, k = b[fits], s[fits], k[fits]
        keep = batched_nms(b, s, k, 0.4)[:most]
        count.append(len(keep))
        boxes[i, : len(keep)], scores[i, : len(keep)], kinds[i, : len(keep)] = xy(b[keep]), s[keep], k[keep]
    for name, array in (("boxes", boxes), ("scores", scores), ("classes", kinds), ("count", np.array(count))):
        put("choose_" + name, array)


def score():
    pictures, most, found, classes = 20, 5, 9, 3
    truth, kinds = some_boxes(pictures, most), rng.integers(0, classes, (pictures, most))
    boxes, scores = some_boxes(pictures, found), rng.uniform(0, 1, (pictures, found)).astype(np.float32)
    guess = rng.integers(0, classes, (pictures, found))
    for i in range(pictures):
        for j in range(most):
            if rng.uniform() < 0.7:
                boxes[i, j] = truth[i, j] + torch.tensor(rng.normal(0, 1.5, 4), dtype=torch.float32)
                guess[i, j] = kinds[i, j] if rng.uniform() < 0.9 else guess[i, j]
                scores[i, j] = min(1, scores[i, j] + 0.3 * rng.uniform())
        for b, n in ((truth[i], rng.integers(0, 3)), (boxes[i], rng.integers(0, 3))):
            b[len(b) - n:] = 0                                      # rows that are no boxes

    def entry(b, kind, i, number, **more):
        y1, x1, y2, x2 = (float(v) for v in b)
        return {"id": number, "image_id": i + 1, "category_id": int(kind) + 1, "bbox": [x1, y1, x2 - x1, y2 - y1],
                "area": (x2 - x1) * (y2 - y1), "iscrowd": 0, **more}

    there = [entry(truth[i, j], kinds[i, j], i, 0) for i in range(pictures) for j in range(most) if truth[i, j].any()]
    seen = [entry(boxes[i, j], guess[i, j], i, 0, score=float(scores[i, j])) for i in range(pictures) for j in range(found) if boxes[i, j].any()]
    for n, e in enumerate(there):
        e["id"] = n + 1
    with contextlib.redirect_stdout(io.StringIO()):
        coco = COCO()
        coco.dataset = {"info": {}, "images": [{"id": i + 1} for i in range(pictures)], "categories": [{"id": k + 1} for k in range(classes)], "annotations": there}
        coco.createIndex()
        e = COCOeval(coco, coco.loadRes(seen), "bbox")
        e.params.iouThrs, e.params.areaRng, e.params.areaRngLbl = np.array([0.5]), [[0, 1e10]], ["all"]
        e.evaluate()
        e.accumulate()
    for name, array in (("boxes", boxes), ("scores", scores), ("classes", guess), ("truth", truth), ("truth_classes", kinds),
                        ("precision", e.eval["precision"][0, :, :, 0, -1].mean(0)), ("recall", e.eval["recall"][0, :, 0, -1])):
        put("score_" + name, array)


coding()
matching()
loss()
choose()
score()
