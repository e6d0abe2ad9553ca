"""Numba: compiled plain loops, one band of rows per thread (nogil). parallel=True is not used: it crashes in Debian's Numba on
aarch64, where the CPU name must also be set, otherwise Numba generates SVE code that the machine may not support."""
import os
import platform
from concurrent.futures import ThreadPoolExecutor

import measure

if platform.machine() == "aarch64":
    os.environ.setdefault("NUMBA_CPU_NAME", "neoverse-n1")
    os.environ.setdefault("NUMBA_CPU_FEATURES", "")


def maximum():
    from numba import njit

    @njit(nogil=True)
    def band(a, b, out, first, last):
        for y in range(first, last):
            for x in range(a.shape[1]):
                out[y, x] = max(a[y, x], b[y, x])
    return band


def xxt():
    from numba import njit

    @njit(nogil=True, fastmath=True)
    def band(x, out, first, last):
        for i in range(first, last):
            for j in range(x.shape[0]):
                total = x.dtype.type(0)
                for k in range(x.shape[1]):
                    total += x[i, k] * x[j, k]
                out[i, j] = total
    return band


def correlation(kh, kw):
    """The kernel's size is a constant of the compiled code; only pixels near the edge check the image bounds."""
    from numba import njit
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
            start, stop = (left, max(left, width - kw + left + 1)) if inside else (width, width)
            for x in range(min(start, width)):
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


def run(work, device, budget_s):
    import numpy as np
    if work.study == "xxt" and work.rows ** 2 * work.columns > 4e9:
        yield "Numba", "its plain loops would take most of a minute"
        return
    given = measure.inputs(work)
    band = {"max": maximum, "xxt": xxt, "correlation": lambda: correlation(*work.kernel)}[work.study]()
    out = np.empty((work.rows, work.rows if work.study == "xxt" else work.columns), given[0].dtype)
    edges = np.linspace(0, work.rows, measure.cores() + 1).astype(int)
    with ThreadPoolExecutor(measure.cores()) as pool:
        call = lambda: list(pool.map(lambda ends: band(*given, out, *ends), zip(edges, edges[1:])))
        call()
        measure.check_corner(work, given, out)
        yield "Numba", measure.time_cpu(call, budget_s)


measure.run("Numba", run)
