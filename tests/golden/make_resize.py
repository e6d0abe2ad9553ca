#!/usr/bin/env python3
"""Writes resize.json and resize.bin: images and the results of Pillow's Image.resize. Needs Pillow and NumPy."""
import numpy as np
from PIL import Image

from store import Store

FILTERS = {"bilinear": Image.BILINEAR, "bicubic": Image.BICUBIC}
# (height, width) in, (height, width) out
SIZES = [((1, 1), (1, 1)), ((1, 1), (7, 5)), ((9, 9), (1, 1)), ((2, 2), (3, 3)), ((5, 7), (5, 7)), ((5, 7), (7, 5)),
         ((13, 17), (40, 33)), ((17, 64), (16, 8)), ((64, 17), (17, 64)), ((31, 29), (8, 8)), ((33, 47), (32, 46)),
         ((40, 56), (20, 28)), ((40, 56), (13, 56)), ((40, 56), (40, 11)), ((1, 5000), (3, 70)), ((5000, 1), (70, 3)),
         ((96, 120), (24, 37)), ((100, 75), (64, 64)), ((23, 300), (50, 51))]


def picture(kind, height, width, channels, rng):
    """Noise covers every level; black and white stripes make a bicubic filter overshoot."""
    if kind == "noise":
        return rng.integers(0, 256, (height, width, channels)).astype(np.uint8)
    y, x = np.mgrid[0:height, 0:width]
    stripes = ((x // 3 + y // 2) % 2 * 255).astype(np.uint8)
    return np.repeat(stripes[:, :, None], channels, axis=2)


def main():
    store, rng = Store("resize"), np.random.default_rng(7)
    for (height, width), (to_height, to_width) in SIZES:
        for channels in (1, 3):
            kind = "stripes" if (height + channels) % 3 == 0 else "noise"
            pixels = picture(kind, height, width, channels, rng)
            arrays = {"in": pixels}
            for name, method in FILTERS.items():
                image = Image.fromarray(pixels[:, :, 0] if channels == 1 else pixels)
                arrays[name] = np.asarray(image.resize((to_width, to_height), method)).reshape(
                    to_height, to_width, channels)
            store.add(f"{kind} {height}x{width}x{channels} to {to_height}x{to_width}", arrays)
    # A box of a larger image gives the same result as cropping first.
    pixels = picture("noise", 50, 60, 3, rng)
    arrays = {"in": pixels}
    for name, method in FILTERS.items():
        arrays[name] = np.asarray(Image.fromarray(pixels).crop((7, 5, 52, 44)).resize((24, 24), method))
    store.add("box", arrays, x=7, y=5, width=45, height=39)
    store.write()


main()
