"""Transforms of photographs by torchvision on PIL images, for given parameters:
    trivial_augment  every operation of TrivialAugmentWide at several of its magnitudes
    rotation         functional.rotate, nearest
    vertical_flip    functional.vflip
    perspective      as functional.perspective, bilinear, with coefficients in f64

    python3 tests/golden/make_torchvision.py
"""
import numpy as np
from PIL import Image
from torchvision.transforms import InterpolationMode, TrivialAugmentWide, functional
from torchvision.transforms.autoaugment import _apply_op

from store import Store

BINS = 31
KINDS = {"Identity": "identity", "ShearX": "shear_x", "ShearY": "shear_y", "TranslateX": "translate_x", "TranslateY": "translate_y",
         "Rotate": "rotate", "Brightness": "brightness", "Color": "saturation", "Contrast": "contrast", "Sharpness": "sharpness",
         "Posterize": "posterize", "Solarize": "solarize", "AutoContrast": "auto_contrast", "Equalize": "equalize"}
store = Store("torchvision")
rng = np.random.default_rng(81)


def smooth(height, width):
    """A smooth image of random colors with some noise."""
    coarse = Image.fromarray(rng.integers(0, 256, (5, 6, 3), dtype=np.uint8)).resize((width, height), Image.BICUBIC)
    fine = np.asarray(coarse).astype(int) + rng.integers(-25, 26, (height, width, 3))
    return np.clip(fine, 0, 255).astype(np.uint8)


def add(name, pixels, image, **params):
    store.add(name, {"image": pixels, "expected": np.asarray(image)}, **params)


def coefficients(end, start):
    """Of the map from `end` to `start`: torchvision's _get_perspective_coeffs, which some versions compute in f32."""
    rows = []
    for (x, y), (u, v) in zip(end, start):
        rows += [[x, y, 1, 0, 0, 0, -u * x, -u * y], [0, 0, 0, x, y, 1, -v * x, -v * y]]
    exact = np.linalg.solve(np.array(rows, float), np.array(start, float).reshape(8))
    assert np.allclose(exact, functional._get_perspective_coeffs(start, end), rtol=1e-3, atol=1e-3)
    return exact.tolist()


def clear_of_border(c, height, width):
    """Whether no pixel comes from the very border of the image, where rounding decides if it is outside."""
    y, x = np.mgrid[:height, :width] + 0.5
    w = c[6] * x + c[7] * y + 1
    u, v = (c[0] * x + c[1] * y + c[2]) / w, (c[3] * x + c[4] * y + c[5]) / w
    return min(abs(u).min(), abs(v).min(), abs(u - width).min(), abs(v - height).min()) > 1e-6


operations = TrivialAugmentWide()._augmentation_space(BINS)
assert list(operations) == list(KINDS)
for number, (height, width) in enumerate([(14, 21), (23, 16)]):
    pixels = smooth(height, width)
    image = Image.fromarray(pixels)
    for name, (magnitudes, signed) in operations.items():
        for magnitude in (0, 1, 7, 15, 22, 30):
            for negative in (False, True) if signed else (False,):
                value = float(magnitudes[magnitude]) if magnitudes.ndim > 0 else 0.0
                result = _apply_op(image, name, -value if negative else value, InterpolationMode.NEAREST, None)
                add(f"{number} {name} {magnitude}{' negative' if negative else ''}", pixels, result, op="trivial_augment",
                    kind=KINDS[name], magnitude=magnitude, negative=negative)
    for degrees in (-179.5, -90, -33.3, 0, 1, 45, 90, 120.25, 180):
        add(f"{number} rotation {degrees}", pixels, functional.rotate(image, degrees), op="rotation", degrees=degrees)
    add(f"{number} vertical flip", pixels, functional.vflip(image), op="vertical_flip")
    right, bottom = width - 1, height - 1
    start = [[0, 0], [right, 0], [right, bottom], [0, bottom]]
    for case in range(8):
        map_ = None
        while map_ is None or not clear_of_border(map_, height, width):
            inward = rng.integers(0, [width // 2, height // 2], (4, 2)) if case else np.zeros((4, 2), int)
            end = [[int(x + (dx if x == 0 else -dx)), int(y + (dy if y == 0 else -dy))] for (x, y), (dx, dy) in zip(start, inward)]
            map_ = coefficients(end, start)
        add(f"{number} perspective {case}", pixels, image.transform(image.size, Image.PERSPECTIVE, map_, Image.BILINEAR),
            op="perspective", corners=end)
store.write()
