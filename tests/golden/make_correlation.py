"""Stored cases for the 2-D correlation: expected = scipy.signal.convolve2d(image, kernel[::-1, ::-1], mode="same").

The rule behind it, checked here with plain loops for every case, also for even kernels and for kernels larger than the image:
    expected[y, x] = sum over i, j of kernel[i, j] * image[y + i - kh // 2, x + j - kw // 2], outside the image 0
(scipy's "same" starts (k - 1) // 2 into the full convolution; with the kernel flipped that leaves k - 1 - (k - 1) // 2 = k // 2
neighbors before the pixel, so an even kernel has one more before than after.) `expected` is f64 for f32 images too.

    python3 tests/golden/make_correlation.py
"""
import numpy as np
from scipy import signal

from store import Store

IMAGES = [(1, 1), (1, 7), (7, 1), (2, 2), (3, 5), (17, 33), (31, 32)]
KERNELS = [(1, 1), (2, 2), (3, 3), (4, 3), (5, 3), (1, 9), (9, 1), (9, 9)]
LARGE = [((64, 64), (3, 3)), ((64, 64), (5, 5)), ((64, 64), (8, 8)), ((65, 63), (7, 7)), ((33, 128), (6, 6)), ((129, 97), (3, 3)),
         ((129, 97), (7, 7)), ((129, 97), (4, 3)), ((5, 200), (3, 5)), ((200, 5), (5, 3))]
BEYOND = [((2, 3), (5, 8)), ((4, 4), (11, 11)), ((6, 5), (12, 13)), ((1, 3), (2, 40)), ((8, 2), (17, 4)), ((3, 3), (6, 1))]


def by_loops(image, kernel):
    (h, w), (kh, kw) = image.shape, kernel.shape
    out = np.zeros((h, w))
    for i in range(kh):
        for j in range(kw):
            dy, dx = i - kh // 2, j - kw // 2
            for y in range(max(0, -dy), min(h, h - dy)):
                for x in range(max(0, -dx), min(w, w - dx)):
                    out[y, x] += kernel[i, j] * image[y + dy, x + dx]
    return out


store = Store("correlation")
rng = np.random.default_rng(20)
pairs = [(i, k) for i in IMAGES for k in KERNELS] + LARGE + BEYOND
for number, ((h, w), (kh, kw)) in enumerate(pairs):
    # Both dtypes where arrays are small or sizes unusual; the large images take turns.
    for dtype in (np.float32, np.float64):
        if h * w > 4000 and (number % 2 == 0) == (dtype == np.float64):
            continue
        image, kernel = rng.standard_normal((h, w)).astype(dtype), rng.standard_normal((kh, kw)).astype(dtype)
        expected = signal.convolve2d(image.astype(np.float64), kernel[::-1, ::-1].astype(np.float64), mode="same")
        np.testing.assert_allclose(expected, by_loops(image.astype(np.float64), kernel.astype(np.float64)), rtol=1e-11, atol=1e-11)
        name = f"image {h}x{w} kernel {kh}x{kw} {'f32' if dtype == np.float32 else 'f64'}"
        store.add(name, {"image": image, "kernel": kernel, "expected": expected})
store.write()
