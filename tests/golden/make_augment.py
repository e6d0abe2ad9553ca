"""Golden cases for augmentation on images of floats, full scale 1:
    rotate     scipy.ndimage.rotate(image, degrees, reshape=False, order=order)
    shift      out[y][x] = image[y + dy][x + dx], outside 0
    skew       out[y][x] = image[y][x + floor(y * tilt)], outside 0
    add_noise  image + amount * u, clipped to 0 ... 1; for value i, u is (2 * bits - 65535) / 65536, where bits is half i % 2
               (low first) of word i / 2 % 4 of Philox4x32-10 at counter (1 + i / 8, operation, sample, epoch)

    zoom       scipy.ndimage.affine_transform(image, 1 / factor, center - center / factor, order=order)
    crop       the same with sqrt(fraction) and the offset (top, left) * (1 - sqrt(fraction)) * (size - 1), order 1
    flip       image[:, ::-1]
    blur       scipy.signal.convolve2d(image, kernel[::-1, ::-1], mode="same") / sum of the positive weights, clipped to 0 ... 1;
               for a gradient the magnitude of that and the result of the transposed kernel

    python3 tests/golden/make_augment.py
"""
import math

import numpy as np
from scipy import ndimage, signal

from store import Store

SIZES = [(1, 1, 1), (1, 7, 1), (7, 1, 1), (5, 5, 1), (6, 6, 1), (7, 4, 1), (4, 9, 1), (5, 6, 3), (13, 12, 1), (2, 2, 3)]
ANGLES = [0, 12.5, 45.5, 90, 101.25, 180, 213, 270, 300.125, -33, -90, -170.5, 450, 725.25]
SHIFTS = [(0, 0), (1, 0), (-1, 0), (0, 1), (0, -1), (2, -3), (-2, 3), (4, 4), (-5, -5), (100, 0), (0, -100), (-65536, 65536)]
TILTS = [0, 1, -1, 0.5, -0.5, 0.3, -0.3, 1 / 3, -1 / 7, 2.7, -2.7, 1000, -1000]

FACTORS = [1, 1.25, 0.8, 2, 0.5, 1.618, 0.25, 7, 100, 0.97]
BOXES = [(1, 0.5, 0.5), (0.5, 0, 0), (0.5, 0.5, 0.5), (0.25, 0.125, 0.75), (0.08, 0.3, 0.9), (0.64, 0.875, 0.25), (0.01, 0.5, 0)]
KERNELS = {"ring": [[1, 1, 1], [1, 0, 1], [1, 1, 1]],
           "sobel1": [[1, 0, -1], [2, 0, -2], [1, 0, -1]],
           "sobel2": [[3, 0, -3], [10, 0, -10], [3, 0, -3]],
           "sobel3": [[1, 0, -1], [2, 0, -2], [1, 0, -1], [2, 0, -2], [1, 0, -1]],
           "sobel4": [[1, 0, 0, 0, -1], [2, 0, 0, 0, -2], [1, 0, 0, 0, -1], [2, 0, 0, 0, -2], [1, 0, 0, 0, -1]],
           "1 2 1; 2 4 2; 1 2 1": [[1, 2, 1], [2, 4, 2], [1, 2, 1]],
           "1 2; 3 4": [[1, 2], [3, 4]],
           "-1 5 -1 -1": [[-1, 5, -1, -1]],
           "1000": [[1000]]}


def philox(counter, key):
    c, k = list(counter), [key & 0xFFFFFFFF, key >> 32]
    for _ in range(10):
        p0, p1 = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [p1 >> 32 ^ c[1] ^ k[0], p1 & 0xFFFFFFFF, p0 >> 32 ^ c[3] ^ k[1], p0 & 0xFFFFFFFF]
        k = [k[0] + 0x9E3779B9 & 0xFFFFFFFF, k[1] + 0xBB67AE85 & 0xFFFFFFFF]
    return c


def moved(image, dy, dx):
    """out[y][x] = image[y + dy][x + dx(y)]"""
    out = np.zeros_like(image)
    h, w, _ = image.shape
    for y in range(h):
        for x in range(w):
            if 0 <= y + dy < h and 0 <= x + dx(y) < w:
                out[y, x] = image[y + dy, x + dx(y)]
    return out


def noisy(image, amount, key):
    out = image.astype(np.float64).ravel()
    for i in range(out.size):
        word = philox((1 + i // 8, key["operation"], key["sample"], key["epoch"]), key["seed"])[i // 2 % 4]
        bits = word >> i % 2 * 16 & 0xFFFF
        out[i] = min(max(out[i] + amount * (2 * bits - 65535) / 65536, 0), 1)
    return out.astype(np.float32).reshape(image.shape)


def affine(image, scale, offset, order):
    channels = [ndimage.affine_transform(image[:, :, c].astype(np.float64), np.eye(2) * scale, offset, order=order)
                for c in range(image.shape[2])]
    return np.stack(channels, axis=2).astype(np.float32)


def correlated(channel, kernel):
    padded = np.pad(channel, 8)  # "same" is the size of the kernel where it is the larger of the two
    out = signal.convolve2d(padded, kernel[::-1, ::-1], mode="same")[8:-8, 8:-8]
    if kernel.shape[0] % 2 and kernel.shape[1] % 2:
        assert np.allclose(out, ndimage.correlate(channel, kernel, mode="constant"), atol=1e-12)
    return out


def blurred(image, name):
    kernel = np.array(KERNELS[name], dtype=np.float64)
    out = np.empty(image.shape)
    for c in range(image.shape[2]):
        channel = image[:, :, c].astype(np.float64)
        value = correlated(channel, kernel)
        if name.startswith("sobel"):
            value = np.hypot(value, correlated(channel, kernel.T))
        out[:, :, c] = np.clip(value / kernel[kernel > 0].sum(), 0, 1)
    return out.astype(np.float32)


store = Store("augment")
rng = np.random.default_rng(21)
for number, size in enumerate(SIZES):
    image = rng.random(size, dtype=np.float32)
    text = "x".join(map(str, size))
    for turn, angle in enumerate(ANGLES):
        for order in (0, 1, 3) if size == (5, 5, 1) else ((0, 1, 3)[(turn + number) % 3],):
            expected = ndimage.rotate(image.astype(np.float64), angle, reshape=False, order=order).astype(np.float32)
            store.add(f"rotate {text} by {angle} order {order}", {"image": image, "expected": expected},
                      op="rotate", degrees=angle, order=order)
for size in [(1, 1, 1), (5, 4, 1), (4, 7, 3), (9, 9, 1)]:
    image = rng.random(size, dtype=np.float32)
    text = "x".join(map(str, size))
    for dx, dy in SHIFTS:
        store.add(f"shift {text} by {dx} {dy}", {"image": image, "expected": moved(image, dy, lambda y: dx)},
                  op="shift", dx=dx, dy=dy)
    for tilt in TILTS:
        store.add(f"skew {text} by {tilt:.4g}", {"image": image, "expected": moved(image, 0, lambda y: math.floor(y * tilt))},
                  op="skew", tilt=tilt)
    for number in range(11):
        key = {"seed": int(rng.integers(1 << 63)), "epoch": number, "sample": int(rng.integers(1 << 31)), "operation": number % 5}
        store.add(f"noise {text} of {number / 10}", {"image": image, "expected": noisy(image, number / 10, key)},
                  op="add_noise", amount=number / 10, **key)
for number, size in enumerate(SIZES):
    image = rng.random(size, dtype=np.float32)
    text = "x".join(map(str, size))
    center = (np.array(size[:2]) - 1) / 2
    for turn, factor in enumerate(FACTORS):
        order = (0, 1, 3)[(turn + number) % 3]
        store.add(f"zoom {text} by {factor} order {order}",
                  {"image": image, "expected": affine(image, 1 / factor, center - center / factor, order)},
                  op="zoom", factor=factor, order=order)
    for fraction, left, top in BOXES:
        scale = math.sqrt(fraction)
        offset = np.array([top, left]) * (1 - scale) * 2 * center
        store.add(f"crop {text} to {fraction} at {left} {top}",
                  {"image": image, "expected": affine(image, scale, offset, 1)},
                  op="crop", fraction=fraction, left=left, top=top)
    store.add(f"flip {text}", {"image": image, "expected": image[:, ::-1].copy()}, op="flip")
    for name in KERNELS:
        store.add(f"blur {text} with {name}", {"image": image, "expected": blurred(image, name)}, op="blur", kernel=name)
store.write()
