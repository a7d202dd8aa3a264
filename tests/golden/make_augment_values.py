#!/usr/bin/env python3
"""Print TensorFlow's numbers for tests/data/test_augment.c: standardisation, contrast and the tutorial's whole chain.

Needs tensorflow 2.21 and numpy. Paste what it prints into the arrays of that test.
"""
import numpy as np
import tensorflow as tf

H, W, C, SIZE = 6, 7, 3, 4
picture = np.array([(37 * i * i + 11 * i + 5) & 255 for i in range(H * W * C)], np.float32).reshape(H, W, C)


def show(name, x, digits):
    flat = np.asarray(x).ravel()
    print(f"static const double {name}[N] = {{")
    for i in range(0, flat.size, 12):
        print("  " + ", ".join(f"{v:.{digits}f}" for v in flat[i:i + 12]) + ",")
    print("};")


top, left = (H - SIZE) // 2, (W - SIZE) // 2
show("tf_standard", tf.image.per_image_standardization(picture[top:top + SIZE, left:left + SIZE]), 6)
x = tf.image.flip_left_right(picture[1:5, 2:6])
x = tf.image.adjust_contrast(tf.image.adjust_brightness(x, -17.5), 0.7)
show("tf_contrast", x, 3)
show("tf_chain", tf.image.per_image_standardization(x), 6)
