"""Stored cases for X * X^T: expected = numpy x @ x.T, for f32 computed and stored in f64, for i32 exact (small integers).

    python3 tests/golden/make_xxt.py
"""
import numpy as np

from store import Store

SHAPES = [(1, 1), (1, 2), (2, 1), (1, 17), (17, 1), (2, 2), (3, 5), (5, 3), (4, 4), (7, 8), (8, 7), (15, 16), (16, 16), (17, 16), (31, 33),
          (32, 32), (33, 1), (33, 31), (1, 129), (48, 20), (64, 3), (65, 64), (63, 65), (129, 65), (97, 1)]

store = Store("xxt")
rng = np.random.default_rng(21)
for rows, columns in SHAPES:
    for dtype, name in ((np.float32, "f32"), (np.float64, "f64"), (np.int32, "i32")):
        if rows > 80 and dtype == np.int32:
            continue
        if dtype == np.int32:
            x = rng.integers(-99, 100, (rows, columns), dtype=dtype)
            expected = x @ x.T
        else:
            x = rng.standard_normal((rows, columns)).astype(dtype)
            expected = x.astype(np.float64) @ x.astype(np.float64).T
        store.add(f"{rows}x{columns} {name}", {"x": x, "expected": expected})
store.write()
