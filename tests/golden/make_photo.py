"""Golden cases for photo transforms, computed by PIL as torchvision does for PIL images:
    op      brightness, contrast, saturation, sharpness (ImageEnhance), hue (HSV), posterize, solarize, auto_contrast,
            equalize (ImageOps), and RandAugment's shears, translations and rotation (Image.transform, nearest)
    center  Resize(shorter side), then CenterCrop
    flip    resize, then a horizontal flip

    python3 tests/golden/make_photo.py
"""
import math

import numpy as np
from PIL import Image, ImageEnhance, ImageOps

from store import Store


def smooth(rng, height, width):
    """A smooth image of random colors with some noise."""
    coarse = Image.fromarray(rng.integers(0, 256, (5, 6, 3), dtype=np.uint8)).resize((width, height), Image.BICUBIC)
    fine = np.asarray(coarse).astype(int) + rng.integers(-25, 26, (height, width, 3))
    return np.clip(fine, 0, 255).astype(np.uint8)


def hue(image, factor):
    h, s, v = image.convert("HSV").split()
    turned = (np.array(h).astype(int) + int(factor * 255)) % 256
    return Image.merge("HSV", (Image.fromarray(turned.astype(np.uint8), "L"), s, v)).convert("RGB")


def affine(image, xx, xy, x0, yx, yy, y0):
    return image.transform(image.size, Image.AFFINE, (xx, xy, x0, yx, yy, y0), Image.NEAREST)


def rand_augment(image, kind, share, negative):
    """As torchvision's _apply_op, with the magnitude at `share` of its range."""
    sign = -1 if negative else 1
    width, height = image.size
    if kind == "shear_x":
        return affine(image, 1, sign * 0.3 * share, 0, 0, 1, 0)
    if kind == "shear_y":
        return affine(image, 1, 0, 0, sign * 0.3 * share, 1, 0)
    if kind == "translate_x":
        return affine(image, 1, 0, -int(sign * 150 / 331 * width * share), 0, 1, 0)
    if kind == "translate_y":
        return affine(image, 1, 0, 0, 0, 1, -int(sign * 150 / 331 * height * share))
    if kind == "rotate":
        return image.rotate(sign * 30 * share, Image.NEAREST)
    if kind == "posterize":
        return ImageOps.posterize(image, 8 - round(4 * share))
    if kind == "solarize":
        return ImageOps.solarize(image, 255 - 255 * share)
    if kind == "auto_contrast":
        return ImageOps.autocontrast(image)
    if kind == "equalize":
        return ImageOps.equalize(image)
    enhance = {"brightness": ImageEnhance.Brightness, "saturation": ImageEnhance.Color,
               "contrast": ImageEnhance.Contrast, "sharpness": ImageEnhance.Sharpness}[kind]
    return enhance(image).enhance(1 + sign * 0.9 * share)


store = Store("photo")
rng = np.random.default_rng(8)
KINDS = ["shear_x", "shear_y", "translate_x", "translate_y", "rotate", "brightness", "saturation", "contrast", "sharpness",
         "posterize", "solarize", "auto_contrast", "equalize"]
for number, (height, width) in enumerate([(16, 21), (20, 11), (1, 5), (3, 3)]):
    pixels = smooth(rng, height, width)
    pixels[:, : width // 3] = pixels[:, : width // 3] // 3 + 40  # narrower histograms
    image = Image.fromarray(pixels)
    for kind in KINDS:
        for magnitude in (0, 9, 30):
            for negative in (False, True):
                result = rand_augment(image, kind, magnitude / 30, negative)
                store.add(f"{number} {kind} {magnitude}{' negative' if negative else ''}",
                          {"image": pixels, "expected": np.asarray(result)},
                          op="rand_augment", kind=kind, magnitude=magnitude, negative=negative)
    for kind, enhance in (("brightness", ImageEnhance.Brightness), ("saturation", ImageEnhance.Color),
                          ("contrast", ImageEnhance.Contrast)):
        for factor in (0.0, 0.6, 1.0, 1.37, 4.5):
            store.add(f"{number} {kind} factor {factor}",
                      {"image": pixels, "expected": np.asarray(enhance(image).enhance(factor))},
                      op="factor", kind=kind, factor=factor)
    for factor in (-0.5, -0.213, -0.01, 0.0, 0.1, 0.333, 0.5):
        store.add(f"{number} hue {factor}", {"image": pixels, "expected": np.asarray(hue(image, factor))},
                  op="hue", turn=int(factor * 255))
pixels = np.stack(np.meshgrid([0, 1, 77, 128, 200, 254, 255], np.arange(0, 256, 15), [0, 13, 140, 255]), -1)
pixels = pixels.reshape(-1, 28, 3).astype(np.uint8)
for turn in (-100, 3, 85, 127):
    store.add(f"hue of all colors by {turn}",
              {"image": pixels, "expected": np.asarray(hue(Image.fromarray(pixels), (turn + math.copysign(0.5, turn)) / 255))},
              op="hue", turn=turn)
for number, ((height, width), side, size) in enumerate([((40, 61), 32, 28), ((61, 40), 32, 28), ((19, 18), 37, 32),
                                                        ((20, 27), 20, 17), ((33, 33), 9, 8), ((1, 90), 12, 7),
                                                        ((90, 1), 12, 11), ((1, 1), 16, 14), ((47, 200), 17, 16)]):
    pixels = smooth(rng, height, width)
    for name, filter in (("bilinear", Image.BILINEAR), ("bicubic", Image.BICUBIC)):
        resized = (side, int(side * height / width)) if width <= height else (int(side * width / height), side)
        image = Image.fromarray(pixels).resize(resized, filter)
        top, left = int(round((image.size[1] - size) / 2.0)), int(round((image.size[0] - size) / 2.0))
        store.add(f"center {number} {name}",
                  {"image": pixels, "expected": np.asarray(image.crop((left, top, left + size, top + size)))},
                  op="center", side=side, size=size, filter=name)
    flipped = Image.fromarray(pixels).resize((size, size), Image.BILINEAR).transpose(Image.FLIP_LEFT_RIGHT)
    store.add(f"flip {number}", {"image": pixels, "expected": np.asarray(flipped)}, op="flip", size=size)
store.write()
