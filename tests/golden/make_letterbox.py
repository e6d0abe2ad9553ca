"""Photographs fitted by Pillow's ImageOps.pad: resized with their aspect ratio kept, centered on a gray background.

    python3 tests/golden/make_letterbox.py
"""
import numpy as np
from PIL import Image, ImageOps

from store import Store

store = Store("letterbox")
rng = np.random.default_rng(18)
SIZES = [(40, 61), (61, 40), (33, 33), (8, 9), (50, 38), (17, 70), (1, 30), (30, 1), (1, 1), (37, 64), (13, 11), (29, 30)]
for number, (height, width) in enumerate(SIZES):
    pixels = rng.integers(0, 256, (height, width, 3), dtype=np.uint8)
    for out_height, out_width, level in ((32, 32, 0), (17, 17, 114), (20, 31, 255)):
        for name, method in (("bilinear", Image.BILINEAR), ("bicubic", Image.BICUBIC)):
            padded = ImageOps.pad(Image.fromarray(pixels), (out_width, out_height), method, color=(level,) * 3)
            store.add(f"{number} {width}x{height} to {out_width}x{out_height} {name}",
                      {"image": pixels, "expected": np.asarray(padded)}, height=out_height, width=out_width, level=level,
                      filter=name)
store.write()
