"""Stored cases for the element-wise maximum: expected = numpy.maximum(a, b), with broadcasting.

NaN as in numpy.maximum: where either operand is NaN the result is NaN. No case depends on the sign of a zero.

    python3 tests/golden/make_maximum.py
"""
import numpy as np

from store import Store

SAME = [(1,), (2,), (17,), (1, 1), (3, 5), (31, 33), (64, 65), (2, 3, 4)]
BROADCAST = [((3, 1), (1, 4)), ((5,), (3, 5)), ((4, 3), (1,)), ((), (2, 3)), ((2, 1, 4), (3, 1)), ((7, 1), (7, 9))]
NAMES = {np.int32: "i32", np.int64: "i64", np.uint8: "u8", np.float32: "f32", np.float64: "f64"}

store = Store("maximum")
rng = np.random.default_rng(22)


def add(name, a, b):
    store.add(name, {"a": a, "b": b, "expected": np.maximum(a, b)})


def draw(shape, dtype):
    if np.issubdtype(dtype, np.floating):
        return rng.standard_normal(shape).astype(dtype) if shape else np.array(rng.standard_normal(), dtype)
    low, high = (0, 256) if dtype == np.uint8 else (-1000, 1001)
    return np.asarray(rng.integers(low, high, shape), dtype)


def text(shape):
    return "x".join(map(str, shape)) or "scalar"


for dtype, name in NAMES.items():
    for shape in SAME:
        add(f"{text(shape)} {name}", draw(shape, dtype), draw(shape, dtype))
    for left, right in BROADCAST:
        add(f"{text(left)} with {text(right)} {name}", draw(left, dtype), draw(right, dtype))
    if np.issubdtype(dtype, np.floating):
        special = np.array([np.nan, np.inf, -np.inf, 1.5, -1.5, np.finfo(dtype).max, np.finfo(dtype).tiny], dtype)
        add(f"NaN and infinities, every pair {name}", special[:, None], special[None, :])
        long = draw((37,), dtype)
        long[[0, 5, 36]] = np.nan
        add(f"NaN in a long row, left {name}", long, draw((37,), dtype))
        add(f"NaN in a long row, right {name}", draw((37,), dtype), long)
        add(f"all negative {name}", -np.abs(draw((19, 3), dtype)) - 1, -np.abs(draw((19, 3), dtype)) - 1)
    else:
        edge = np.array([np.iinfo(dtype).min, np.iinfo(dtype).max, 0, 1, np.iinfo(dtype).max // 2], dtype)
        add(f"limits, every pair {name}", edge[:, None], edge[None, :])
store.write()
