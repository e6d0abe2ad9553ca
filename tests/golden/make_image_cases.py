#!/usr/bin/env python3
"""Writes tests/golden/image: small image files and the pixels PIL reads from them (cases.json, *.raw).

Needs Pillow and NumPy. Run it only to add cases: its output is stored in the repository.
"""
import io
import json
import pathlib
import struct
import zlib

import numpy as np
from PIL import Image, ImageOps

FOLDER = pathlib.Path(__file__).parent / "image"
CASES = []
JPEG_TOLERANCE = 2  # decoders may round differently


def add(name, data, expected, tolerance=0):
    expected = np.asarray(expected, dtype=np.uint8)
    (FOLDER / name).write_bytes(data)
    (FOLDER / (name + ".raw")).write_bytes(expected.tobytes())
    CASES.append({"file": name, "height": expected.shape[0], "width": expected.shape[1],
                  "channels": 1 if expected.ndim == 2 else 3, "tolerance": tolerance})


def saved(image, kind, **options):
    stream = io.BytesIO()
    image.save(stream, kind, **options)
    return stream.getvalue()


def as_pil_reads(data):
    """Upright, alpha over white, gray or RGB."""
    image = ImageOps.exif_transpose(Image.open(io.BytesIO(data)))
    gray = image.mode in ("1", "L", "LA")
    if image.mode in ("LA", "RGBA") or "transparency" in image.info:
        rgba = image.convert("RGBA")
        image = Image.new("RGB", image.size, "white")
        image.paste(rgba, mask=rgba.getchannel("A"))
    return image.convert("L" if gray else "RGB")


def add_pil(name, data, tolerance=0):
    add(name, data, as_pil_reads(data), tolerance)


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png_by_hand(pixels, interlaced=False, extra=b"", bits=None):
    """Writes kinds of PNG that PIL does not: 16 bits per channel, Adam7. `pixels` is height x width x channels."""
    bits = bits or pixels.dtype.itemsize * 8
    height, width, channels = pixels.shape
    color_type = {1: 0, 2: 4, 3: 2, 4: 6}[channels]
    passes = [(0, 0, 8, 8), (0, 4, 8, 8), (4, 0, 8, 4), (0, 2, 4, 4), (2, 0, 4, 2), (0, 1, 2, 2), (1, 0, 2, 1)]
    raw = b""
    for y, x, step_y, step_x in passes if interlaced else [(0, 0, 1, 1)]:
        part = pixels[y::step_y, x::step_x]
        if part.size == 0:
            continue
        for row in part:
            if bits < 8:
                ones = np.unpackbits(row.reshape(-1, 1), axis=1)[:, 8 - bits:]
                raw += b"\0" + np.packbits(ones.reshape(-1)).tobytes()
            else:
                raw += b"\0" + row.astype(">u2" if bits == 16 else "u1").tobytes()
    header = struct.pack(">IIBBBBB", width, height, bits, color_type, 0, 0, int(interlaced))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + extra + chunk(b"IDAT", zlib.compress(raw, 9)) +
            chunk(b"IEND", b""))


def bmp_16(pixels, masks):
    """Writes 16 bits per pixel, which PIL only reads: 5 bits per channel, or according to the masks."""
    height, width = pixels.shape
    raster = b"".join(row.tobytes() + bytes(-2 * width % 4) for row in pixels.astype("<u2")[::-1])
    extra = struct.pack(f"<{len(masks)}I", *masks)
    info = struct.pack("<IiiHHIIiiII", 40, width, height, 1, 16, 3 if masks else 0, len(raster), 0, 0, 0, 0)
    offset = 14 + len(info) + len(extra)
    return b"BM" + struct.pack("<IHHI", offset + len(raster), 0, 0, offset) + info + extra + raster


def scene(height, width, channels, seed):
    """Smooth waves with a few hard edges."""
    y, x = np.mgrid[0:height, 0:width]
    rng = np.random.default_rng(seed)
    layers = []
    for _ in range(channels):
        a, b, c = rng.uniform(0.1, 0.5, 3)
        layer = 127 + 100 * np.sin(a * x + 3 * c) * np.cos(b * y)
        layer[height // 3: height // 2, width // 4: width // 2] = rng.integers(0, 256)
        layers.append(layer)
    return np.clip(np.stack(layers, axis=-1), 0, 255).astype(np.uint8)


def exif(orientation):
    block = Image.Exif()
    block[0x0112] = orientation
    return block


def main():
    FOLDER.mkdir(exist_ok=True)
    rgb = Image.fromarray(scene(29, 37, 3, 1))
    gray = Image.fromarray(scene(29, 37, 1, 2)[:, :, 0])
    rgba = Image.fromarray(scene(29, 37, 4, 3))
    gray_alpha = Image.fromarray(scene(29, 37, 2, 4), "LA")

    for name, subsampling in (("444", 0), ("422", 1), ("420", 2)):
        add_pil(f"jpeg_{name}.jpg", saved(rgb, "JPEG", quality=90, subsampling=subsampling), JPEG_TOLERANCE)
    add_pil("jpeg_progressive.jpg", saved(rgb, "JPEG", quality=90, progressive=True), JPEG_TOLERANCE)
    add_pil("jpeg_gray.jpg", saved(gray, "JPEG", quality=90), JPEG_TOLERANCE)
    add_pil("jpeg_gray_progressive.jpg", saved(gray, "JPEG", quality=90, progressive=True), JPEG_TOLERANCE)
    add_pil("jpeg_one_pixel.jpg", saved(rgb.crop((0, 0, 1, 1)), "JPEG"), JPEG_TOLERANCE)
    cmyk = saved(rgb.convert("CMYK"), "JPEG", quality=92)
    add_pil("jpeg_cmyk.jpg", cmyk, JPEG_TOLERANCE)
    adobe = cmyk.index(b"Adobe")
    ycck = bytearray(cmyk)
    ycck[adobe + 11] = 2  # the same data read as YCCK: unusual colors, but a valid test
    add_pil("jpeg_ycck.jpg", bytes(ycck), JPEG_TOLERANCE)

    turned = Image.fromarray(scene(16, 24, 3, 5))
    for orientation in range(1, 9):
        add_pil(f"exif_{orientation}.jpg", saved(turned, "JPEG", quality=90, exif=exif(orientation)), JPEG_TOLERANCE)
        add_pil(f"exif_{orientation}.png", saved(turned, "PNG", exif=exif(orientation)))

    add_pil("png_rgb.png", saved(rgb, "PNG"))
    add_pil("png_rgba.png", saved(rgba, "PNG"))
    add_pil("png_gray.png", saved(gray, "PNG"))
    add_pil("png_gray_alpha.png", saved(gray_alpha, "PNG"))
    add_pil("png_1_bit.png", saved(gray.convert("1"), "PNG"))
    for bits in (1, 2, 4, 8):
        palette = rgb.quantize(2 ** bits)
        add_pil(f"png_palette_{bits}.png", saved(palette, "PNG", bits=bits))
    add_pil("png_palette_alpha.png", saved(rgb.quantize(16), "PNG", transparency=bytes(range(0, 256, 16))))
    add_pil("png_gray_transparent.png", saved(gray, "PNG", transparency=int(np.asarray(gray)[10, 10])))
    add_pil("png_rgb_transparent.png", saved(rgb, "PNG", transparency=tuple(int(v) for v in np.asarray(rgb)[10, 10])))
    for name, image in (("rgb", rgb), ("rgba", rgba), ("gray", gray)):
        pixels = np.asarray(image).reshape(29, 37, -1)
        add_pil(f"png_interlaced_{name}.png", png_by_hand(pixels, interlaced=True))
    add_pil("png_interlaced_tiny.png", png_by_hand(np.asarray(rgb)[:3, :2], interlaced=True))
    for bits in (2, 4):
        pixels = (np.asarray(gray) >> (8 - bits))[:, :, None]
        add(f"png_gray_{bits}.png", png_by_hand(pixels, bits=bits), pixels[:, :, 0] * (255 // (2 ** bits - 1)))

    # PIL truncates 16 bits to 8; Tandem rounds, so the expected pixels are computed here.
    wide = np.random.default_rng(6).integers(0, 65536, (13, 11, 4)).astype(np.uint16)
    narrow = np.rint(wide / 257).astype(np.uint8)
    add("png_rgb_16.png", png_by_hand(wide[:, :, :3]), narrow[:, :, :3])
    add("png_gray_16.png", png_by_hand(wide[:, :, :1]), narrow[:, :, 0])
    add("png_gray_16_interlaced.png", png_by_hand(wide[:, :, :1], interlaced=True), narrow[:, :, 0])
    alpha = narrow[:, :, 3:].astype(np.float64) / 255
    add("png_rgba_16.png", png_by_hand(wide), np.rint(narrow[:, :, :3] * alpha + 255 * (1 - alpha)))

    add_pil("bmp_24.bmp", saved(rgb, "BMP"))
    add_pil("bmp_32.bmp", saved(rgba, "BMP"))
    add_pil("bmp_palette.bmp", saved(rgb.quantize(256), "BMP"))
    add_pil("bmp_gray.bmp", saved(gray, "BMP"))
    add_pil("bmp_1_bit.bmp", saved(gray.convert("1"), "BMP"))
    sixteen = np.random.default_rng(9).integers(0, 65536, (7, 9))
    add_pil("bmp_16_555.bmp", bmp_16(sixteen, ()))
    add_pil("bmp_16_555_fields.bmp", bmp_16(sixteen, (0x7C00, 0x3E0, 0x1F)))
    add_pil("bmp_16_565.bmp", bmp_16(sixteen, (0xF800, 0x7E0, 0x1F)))
    add_pil("pnm_rgb.ppm", saved(rgb, "PPM"))
    add_pil("pnm_gray.pgm", saved(gray, "PPM"))

    for name, image in (("rgb", rgb), ("rgba", rgba)):
        add_pil(f"webp_{name}.webp", saved(image, "WEBP", quality=90))
        add_pil(f"webp_{name}_lossless.webp", saved(image, "WEBP", lossless=True))
    add_pil("webp_one_pixel.webp", saved(rgb.crop((0, 0, 1, 1)), "WEBP", lossless=True))
    for orientation in (3, 6, 8):
        add_pil(f"exif_{orientation}.webp", saved(turned, "WEBP", lossless=True, exif=exif(orientation)))

    long_row = Image.fromarray(scene(1, 5000, 3, 8))
    add_pil("jpeg_long_row.jpg", saved(long_row, "JPEG", quality=90), JPEG_TOLERANCE)
    add_pil("png_long_row.png", saved(long_row, "PNG"))
    add_pil("png_long_column.png", saved(long_row.rotate(90, expand=True), "PNG"))
    (FOLDER / "cases.json").write_text(json.dumps(CASES, indent=1) + "\n")


main()
