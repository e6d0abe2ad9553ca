"""Golden distributions of the boxes sampled by torchvision's RandomResizedCrop.get_params and RandomErasing.get_params,
both reimplemented below. For every case, histograms of 200,000 samples: of the fraction of the area, of the logarithm of
the ratio, and of the offset relative to its maximum (bin 0: the maximum is 0).

    python3 tests/golden/make_crop.py
"""
import math
import random

import numpy as np

from store import Store

SAMPLES, BINS = 200_000, 21


def crop(rng, height, width, scale, ratio):
    area = height * width
    for _ in range(10):
        target = area * rng.uniform(*scale)
        aspect = math.exp(rng.uniform(math.log(ratio[0]), math.log(ratio[1])))
        w, h = int(round(math.sqrt(target * aspect))), int(round(math.sqrt(target / aspect)))
        if 0 < w <= width and 0 < h <= height:
            return rng.randrange(0, height - h + 1), rng.randrange(0, width - w + 1), h, w
    in_ratio = width / height
    if in_ratio < min(ratio):
        w = width
        h = int(round(w / min(ratio)))
    elif in_ratio > max(ratio):
        h = height
        w = int(round(h * max(ratio)))
    else:
        w, h = width, height
    return (height - h) // 2, (width - w) // 2, h, w


def erase(rng, height, width, scale, ratio):
    area = height * width
    for _ in range(10):
        target = area * rng.uniform(*scale)
        aspect = math.exp(rng.uniform(math.log(ratio[0]), math.log(ratio[1])))
        h, w = int(round(math.sqrt(target * aspect))), int(round(math.sqrt(target / aspect)))
        if h < height and w < width:
            return rng.randrange(0, height - h + 1), rng.randrange(0, width - w + 1), h, w
    return 0, 0, 0, 0


def bin_of(share):
    return min(BINS - 1, max(0, math.floor(share * BINS)))


def offset_bin(at, max_offset):
    return 0 if max_offset == 0 else 1 + min(BINS - 2, at * (BINS - 1) // (max_offset + 1))


store = Store("crop")
rng = random.Random(5)
CASES = [(crop, (500, 375), (0.08, 1), (3 / 4, 4 / 3)), (crop, (375, 500), (0.08, 1), (3 / 4, 4 / 3)),
         (crop, (100, 1000), (0.08, 1), (3 / 4, 4 / 3)), (crop, (3000, 11), (0.5, 1), (3 / 4, 4 / 3)),
         (crop, (5, 3), (0.08, 1), (3 / 4, 4 / 3)), (crop, (1, 1), (0.08, 1), (3 / 4, 4 / 3)),
         (crop, (5000, 1), (0.08, 1), (3 / 4, 4 / 3)), (crop, (1, 5000), (0.08, 1), (3 / 4, 4 / 3)),
         (crop, (64, 64), (0.25, 0.3), (0.5, 3)), (crop, (224, 224), (1, 1), (1, 1)),
         (erase, (224, 224), (0.02, 0.33), (0.3, 3.3)), (erase, (32, 20), (0.02, 0.9), (0.3, 3.3))]
for number, (sample_box, (height, width), scale, ratio) in enumerate(CASES):
    area, aspect, left, top = (np.zeros(BINS, np.int64) for _ in range(4))
    for _ in range(SAMPLES):
        y, x, h, w = sample_box(rng, height, width, scale, ratio)
        area[bin_of(h * w / (height * width))] += 1
        aspect[bin_of((math.log(w / h) + 3) / 6 if h * w > 0 else 0)] += 1
        left[offset_bin(x, width - w)] += 1
        top[offset_bin(y, height - h)] += 1
    store.add(f"{number} {sample_box.__name__} {height}x{width}", {"area": area, "aspect": aspect, "left": left, "top": top},
              op=sample_box.__name__, height=height, width=width, scale=scale, ratio=ratio)
store.write()
