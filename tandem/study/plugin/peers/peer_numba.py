"""Numba: compiled plain loops, one band of rows per thread (nogil).

parallel=True is not used: it crashes in Debian's Numba on aarch64, where the CPU name must also be set, otherwise Numba generates SVE code that the
machine may not support."""
import os
import platform
from concurrent.futures import ThreadPoolExecutor

if platform.machine() == "aarch64":
    os.environ.setdefault("NUMBA_CPU_NAME", "neoverse-n1")
    os.environ.setdefault("NUMBA_CPU_FEATURES", "")

import numpy as np
from numba import njit

CORES = len(os.sched_getaffinity(0))
pool = ThreadPoolExecutor(CORES)
MAX_STEPS = 4_000_000_000
compiled = {}


def in_bands(band, *arrays):
    edges = np.linspace(0, arrays[-1].shape[0], CORES + 1).astype(int)
    list(pool.map(lambda ends: band(*arrays, *ends), zip(edges, edges[1:])))


@njit(nogil=True)
def max_band(a, b, out, first, last):
    for y in range(first, last):
        for x in range(a.shape[1]):
            out[y, x] = a[y, x] if a[y, x] > b[y, x] else b[y, x]


@njit(nogil=True, fastmath=True)
def xxt_band(x, out, first, last):
    for i in range(first, last):
        for j in range(x.shape[0]):
            total = x.dtype.type(0)
            for k in range(x.shape[1]):
                total += x[i, k] * x[j, k]
            out[i, j] = total


def correlation_band(kh, kw):
    """The kernel's size is a constant of the compiled code; only pixels near the edge check the bounds of the image."""
    top, left = kh // 2, kw // 2

    @njit(nogil=True, fastmath=True)
    def at_edge(image, kernel, y, x):
        total = image.dtype.type(0)
        for i in range(kh):
            for j in range(kw):
                if 0 <= y + i - top < image.shape[0] and 0 <= x + j - left < image.shape[1]:
                    total += kernel[i, j] * image[y + i - top, x + j - left]
        return total

    @njit(nogil=True, fastmath=True)
    def band(image, kernel, out, first, last):
        height, width = image.shape
        for y in range(first, last):
            inside = y >= top and y + kh - top <= height
            start = min(left, width) if inside else width
            stop = max(start, width - kw + left + 1) if inside else width
            for x in range(start):
                out[y, x] = at_edge(image, kernel, y, x)
            for x in range(start, stop):
                total = image.dtype.type(0)
                for i in range(kh):
                    for j in range(kw):
                        total += kernel[i, j] * image[y + i - top, x + j - left]
                out[y, x] = total
            for x in range(stop, width):
                out[y, x] = at_edge(image, kernel, y, x)
    return band


def tandem_max(a, b, out):
    in_bands(max_band, a, b, out)


def xxt(x, out):
    if x.shape[0] * x.size > MAX_STEPS:
        return NotImplemented
    in_bands(xxt_band, x, out)


def correlation(image, kernel, out):
    if image.size * kernel.size > MAX_STEPS:
        return NotImplemented
    if kernel.shape not in compiled:
        compiled[kernel.shape] = correlation_band(*kernel.shape)
    in_bands(compiled[kernel.shape], image, kernel, out)
