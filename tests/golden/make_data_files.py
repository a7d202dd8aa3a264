#!/usr/bin/env python3
"""Data files as NumPy, TensorFlow and Pillow write them, and what those read out of the pictures: tests/golden/data/.

Needs numpy, tensorflow and pillow; run in the root of the tree. tests/data/test_golden.c reads the files. What they hold is computed
there again, except for pictures, whose pixels are in pictures.txt, one line each: `name height width channels hex`, and for resized
ones `resize name fit height width channels hex`.
"""
import gzip
import io
import pathlib

import numpy as np
import tensorflow as tf
from PIL import Image

OUT = pathlib.Path("tests/golden/data")


def numbers(n, k=7, m=251):
    return (np.arange(n) * k + 3) % m


def write(name, data):
    path = OUT / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def idx(array, code):
    head = bytes([0, 0, code, array.ndim]) + b"".join(int(d).to_bytes(4, "big") for d in array.shape)
    return head + array.astype(array.dtype.newbyteorder(">")).tobytes()


def idx_files():
    images = numbers(6 * 4 * 5).astype(np.uint8).reshape(6, 4, 5)
    labels = np.array([3, 1, 4, 1, 5, 0], np.uint8)
    write("mnist/train-images-idx3-ubyte", idx(images, 8))
    write("mnist/train-labels-idx1-ubyte", idx(labels, 8))
    write("mnist/t10k-images-idx3-ubyte.gz", gzip.compress(idx(images[:2], 8), mtime=0))
    write("mnist/t10k-labels-idx1-ubyte.gz", gzip.compress(idx(labels[:2], 8), mtime=0))
    for code, dtype in ((9, np.int8), (11, np.int16), (12, np.int32), (13, np.float32), (14, np.float64)):
        write(f"idx/{np.dtype(dtype).name}.idx2", idx((numbers(6) - 100).astype(dtype).reshape(3, 2), code))


def npy(array, **keys):
    f = io.BytesIO()
    np.lib.format.write_array(f, array, **keys)
    return f.getvalue()


def numpy_files():
    grid = numbers(24) - 100
    for descr in ("<f4", ">f4", "<f8", ">f8", "<f2", ">f2", "<i8", ">i8", "<i4", ">i4", "<i2", ">u2", "<u4", "|i1"):
        dtype = np.dtype(descr)
        array = (np.abs(grid) if dtype.kind == "u" else grid).astype(dtype).reshape(4, 3, 2)
        write(f"npy/c_{descr[1:]}{'b' if descr[0] == '>' else 'l'}.npy", npy(array))
    write("npy/bool.npy", npy((grid > 0).reshape(4, 3, 2)))
    write("npy/fortran.npy", npy(np.asfortranarray(grid.astype(np.float32).reshape(4, 3, 2))))
    write("npy/fortran_big.npy", npy(np.asfortranarray(grid.astype(">i2").reshape(4, 3, 2))))
    for version in (2, 3):
        write(f"npy/version{version}.npy", npy(grid.astype(np.float32).reshape(4, 3, 2), version=(version, 0)))
    write("npy/pickled.npy", npy(np.array([{"a": 1}, 2], object), allow_pickle=True))
    write("npy/text.npy", npy(np.array(["a", "bc"])))
    write("npy/complex.npy", npy(np.array([1 + 2j])))
    write("npy/records.npy", npy(np.zeros(2, [("a", "<f4"), ("b", "<i4")])))
    write("npy/scalar.npy", npy(np.float32(3)))
    write("npy/none.npy", npy(np.zeros((0, 3), np.float32)))
    x = numbers(7 * 2 * 2 * 3).astype(np.uint8).reshape(7, 2, 2, 3)
    y = np.array([[2], [0], [1], [2], [1], [0], [2]], np.int64)
    f = io.BytesIO()
    np.savez(f, y_train=y[:5], x_train=x[:5], x_test=x[5:], y_test=y[5:])
    write("npz/stored.npz", f.getvalue())
    f = io.BytesIO()
    np.savez_compressed(f, y_train=y[:5], x_train=x[:5], x_test=x[5:], y_test=y[5:])
    write("npz/deflated.npz", f.getvalue())
    f = io.BytesIO()
    np.savez(f, x=grid.astype(np.float64).reshape(8, 3), y=(grid[:8] * 0.5).astype(np.float32))
    write("npz/targets.npz", f.getvalue())
    for name, array in (("x_train", x[:5]), ("y_train", y[:5]), ("x_test", x[5:]), ("y_test", y[5:])):
        write(f"npy_folder/{name}.npy", npy(array))


def features(**values):
    def one(v):
        if isinstance(v, bytes):
            return tf.train.Feature(bytes_list=tf.train.BytesList(value=[v]))
        v = np.asarray(v).ravel()
        if v.dtype.kind == "f":
            return tf.train.Feature(float_list=tf.train.FloatList(value=v))
        return tf.train.Feature(int64_list=tf.train.Int64List(value=v))
    names = {k.replace("__", "/"): one(v) for k, v in values.items()}
    return tf.train.Example(features=tf.train.Features(feature=names)).SerializeToString(deterministic=True)


def picture(h, w, c):
    y, x, k = np.meshgrid(np.arange(h), np.arange(w), np.arange(c), indexing="ij")
    return ((y * 23 + x * 31 + k * 70 + (x - 3) * (y - 2) * 4) % 256).astype(np.uint8)


def tfrecord_files():
    numeric = [features(x=np.float32([i, -i, 0.5 * i]), label=i % 3, id=np.int64(-i - 1), raw=bytes([i, 255 - i])) for i in range(6)]
    pictures = [features(image__encoded=tf.io.encode_png(picture(6 + i, 8, 3)).numpy(), image__class__label=i,
                         image__height=6 + i, image__width=8, image__filename=b"p.png") for i in range(4)]
    raw = [features(image_raw=picture(3, 4, 3).tobytes(), height=3, width=4, depth=3, label=7)]
    for name, records, options in (("numeric.tfrecord", numeric, None), ("numeric_gzip.tfrecord", numeric, "GZIP"),
                                   ("numeric_zlib.tfrecord", numeric, "ZLIB"), ("pictures.tfrecord", pictures, None), ("raw.tfrecord", raw, None)):
        path = OUT / "tfrecord" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with tf.io.TFRecordWriter(str(path), options) as w:
            for r in records:
                w.write(r)


def picture_files():
    lines = []

    def keep(name, data, channels):
        write(f"pictures/{name}", data)
        for c in channels:
            if name.endswith("jpg"):
                got = tf.io.decode_jpeg(data, channels=c, dct_method="INTEGER_ACCURATE").numpy()
            else:
                got = tf.io.decode_png(data, channels=c).numpy()
            lines.append(f"{name} {got.shape[0]} {got.shape[1]} {c} {got.tobytes().hex()}")

    def pil(image, kind, **keys):
        f = io.BytesIO()
        image.save(f, kind, **keys)
        return f.getvalue()

    rgb, grey = picture(10, 9, 3), picture(10, 9, 1)
    rgba = np.concatenate([rgb, picture(10, 9, 1)], axis=2)
    sixteen = rgb.astype(np.uint16) * 256 + 77
    keep("rgb.png", tf.io.encode_png(rgb).numpy(), [3])
    keep("grey.png", tf.io.encode_png(grey).numpy(), [1, 3])
    keep("rgba.png", tf.io.encode_png(rgba).numpy(), [3])
    keep("rgb16.png", tf.io.encode_png(sixteen).numpy(), [3])
    keep("grey16.png", tf.io.encode_png(sixteen[:, :, :1]).numpy(), [1, 3])
    palette = Image.fromarray(rgb).quantize(16)
    keep("palette.png", pil(palette, "PNG"), [3])
    keep("palette_alpha.png", pil(palette, "PNG", transparency=3), [3])
    keep("one_bit.png", pil(Image.fromarray(grey[:, :, 0]).convert("1"), "PNG"), [1, 3])
    keep("rgb.jpg", tf.io.encode_jpeg(rgb, quality=90).numpy(), [1, 3])
    keep("grey.jpg", tf.io.encode_jpeg(grey, quality=90).numpy(), [1, 3])
    keep("progressive.jpg", tf.io.encode_jpeg(rgb, quality=80, progressive=True, chroma_downsampling=False).numpy(), [3])
    write("pictures/cmyk.jpg", pil(Image.fromarray(rgb).convert("CMYK"), "JPEG"))
    image = Image.fromarray(rgb)
    for h, w in ((5, 4), (3, 7), (20, 25), (10, 4)):
        got = np.asarray(image.resize((w, h), Image.Resampling.BILINEAR))
        lines.append(f"resize rgb.png stretch {h} {w} 3 {got.tobytes().hex()}")
        scale = min(10 / h, 9 / w)
        bh, bw = scale * h, scale * w
        box = ((9 - bw) / 2, (10 - bh) / 2, (9 + bw) / 2, (10 + bh) / 2)
        got = np.asarray(image.resize((w, h), Image.Resampling.BILINEAR, box=box))
        lines.append(f"resize rgb.png crop {h} {w} 3 {got.tobytes().hex()}")
    write("pictures/pictures.txt", ("\n".join(lines) + "\n").encode())


if __name__ == "__main__":
    idx_files()
    numpy_files()
    tfrecord_files()
    picture_files()
