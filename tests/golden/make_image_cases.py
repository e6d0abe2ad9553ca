#!/usr/bin/env python3
"""Writes tests/golden/image: small image files and the pixels PIL reads from them (cases.json, *.raw).

Needs Pillow and NumPy, tiffcp (libtiff-tools) and heif-enc (libheif-examples, with x265). Run it only to add cases: its
output is stored in the repository. Arguments are beginnings of file names, such as `tiff heic`: only those are written.
"""
import io
import json
import pathlib
import struct
import subprocess
import sys
import tempfile
import zlib

import numpy as np
from PIL import Image, ImageOps, features

FOLDER = pathlib.Path(__file__).parent / "image"
CASES = []
JPEG_TOLERANCE = 2  # decoders may round differently


def add(name, data, expected, tolerance=0):
    if sys.argv[1:] and not name.startswith(tuple(sys.argv[1:])):
        return
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


def tiff_by_hand(pixels, tags=(), order="<"):
    """Writes kinds of TIFF that PIL does not, uncompressed in one strip. `pixels` is height x width x channels."""
    height, width, channels = pixels.shape
    bits = pixels.dtype.itemsize * 8
    raster = pixels.astype(pixels.dtype.newbyteorder(order)).tobytes()
    entries = {256: (4, [width]), 257: (4, [height]), 258: (3, [bits] * channels), 259: (3, [1]),
               262: (3, [1 if channels < 3 else 2]), 273: (4, [8]), 277: (3, [channels]), 278: (4, [height]),
               279: (4, [len(raster)])}
    entries.update({tag: (3, list(values)) for tag, values in tags})
    start = 8 + len(raster)
    extra_at = start + 2 + 12 * len(entries) + 4
    directory, extra = struct.pack(order + "H", len(entries)), b""
    for tag in sorted(entries):
        kind, values = entries[tag]
        data = struct.pack(f"{order}{len(values)}{'H' if kind == 3 else 'I'}", *values)
        if len(data) > 4:
            data, extra = struct.pack(order + "I", extra_at + len(extra)), extra + data
        directory += struct.pack(order + "HHI", tag, kind, len(values)) + data.ljust(4, b"\0")
    head = b"II*\0" if order == "<" else b"MM\0*"
    return head + struct.pack(order + "I", start) + raster + directory + bytes(4) + extra


def converted(data, suffix, *command):
    """The output of a program that reads one file and writes another: `command` has the names IN and OUT."""
    with tempfile.TemporaryDirectory() as folder:
        source, target = f"{folder}/in{suffix[0]}", f"{folder}/out{suffix[1]}"
        pathlib.Path(source).write_bytes(data)
        subprocess.run([{"IN": source, "OUT": target}.get(word, word) for word in command], check=True,
                       stdout=subprocess.DEVNULL)
        return pathlib.Path(target).read_bytes()


def add_tiffs(rgb, gray, rgba, turned, wide, narrow):
    for name, compression in (("raw", None), ("lzw", "tiff_lzw"), ("deflate", "tiff_adobe_deflate"),
                              ("packbits", "packbits")):
        add_pil(f"tiff_{name}.tif", saved(rgb, "TIFF", compression=compression))
    plain = saved(rgb, "TIFF")
    add("tiff_jpeg.tif", saved(rgb, "TIFF", compression="jpeg", quality=95), as_pil_reads(
        saved(rgb, "TIFF", compression="jpeg", quality=95)), 4)
    for name, flags in (("tiled", ("-t", "-w", "16", "-l", "16")), ("planar", ("-p", "separate")), ("big", ("-8",)),
                        ("big_endian", ("-B",)), ("rows", ("-r", "3", "-c", "lzw"))):
        add(f"tiff_{name}.tiff", converted(plain, (".tif", ".tif"), "tiffcp", *flags, "IN", "OUT"), rgb)
    add_pil("tiff_gray.tif", saved(gray, "TIFF", compression="tiff_lzw"))
    add_pil("tiff_1_bit.tif", saved(gray.convert("1"), "TIFF", compression="group4"))
    add_pil("tiff_palette.tif", saved(rgb.quantize(64), "TIFF"))
    add_pil("tiff_rgba.tif", saved(rgba, "TIFF"))
    add_pil("tiff_cmyk.tif", saved(rgb.convert("CMYK"), "TIFF"), 1)
    two_pages = io.BytesIO()
    rgb.save(two_pages, "TIFF", save_all=True, append_images=[turned])
    add("tiff_two_pages.tif", two_pages.getvalue(), rgb)
    for orientation in range(1, 9):
        data = tiff_by_hand(np.asarray(turned), [(274, [orientation])])
        add(f"tiff_exif_{orientation}.tif", data, as_pil_reads(saved(turned, "PNG", exif=exif(orientation))))
    add("tiff_rgb_16.tif", tiff_by_hand(wide[:, :, :3]), narrow[:, :, :3])
    add("tiff_gray_16.tif", tiff_by_hand(wide[:, :, :1], order=">"), narrow[:, :, 0])
    add("tiff_gray_16_white_is_zero.tif", tiff_by_hand(wide[:, :, :1], [(262, [0])]), 255 - narrow[:, :, 0])
    # A fourth channel that is not alpha, as some cameras and programs write it, is ignored.
    add("tiff_rgbx.tif", tiff_by_hand(np.asarray(rgba), [(338, [0])]), np.asarray(rgba)[:, :, :3])


def rotated(heic, quarter_turns):
    """Adds the property irot (counterclockwise) to the primary image, item 1, of a file by heif-enc."""
    def boxes(data, at, end):
        while at < end:
            size = struct.unpack_from(">I", data, at)[0]
            yield data[at + 4:at + 8], at, size
            at += size
    data = bytearray(heic)
    find = lambda name, start, end: next((at, size) for kind, at, size in boxes(data, start, end) if kind == name)
    meta, meta_size = find(b"meta", 0, len(data))
    iprp, iprp_size = find(b"iprp", meta + 12, meta + meta_size)
    ipco, ipco_size = find(b"ipco", iprp + 8, iprp + iprp_size)
    ipma, ipma_size = find(b"ipma", iprp + 8, iprp + iprp_size)
    iloc, iloc_size = find(b"iloc", meta + 12, meta + meta_size)
    assert data[ipma + 8:ipma + 12] == bytes(4) and data[ipma + 16:ipma + 18] == b"\0\1"  # small fields, item 1 first
    properties = len(list(boxes(data, ipco + 8, ipco + ipco_size)))
    grown = 9 + 1
    # Version 0: number, reference, base offset (4 bytes), count, and extents of offset and length (4 bytes each).
    assert data[iloc + 8] == 0 and data[iloc + 12:iloc + 14] == b"\x44\x40"
    at = iloc + 16
    for _ in range(struct.unpack_from(">H", data, iloc + 14)[0]):
        extents = struct.unpack_from(">H", data, at + 8)[0]
        for extent in range(extents):
            offset = at + 10 + 8 * extent
            struct.pack_into(">I", data, offset, struct.unpack_from(">I", data, offset)[0] + grown)
        at += 10 + 8 * extents
    for box, size, more in ((meta, meta_size, grown), (iprp, iprp_size, grown), (ipco, ipco_size, 9), (ipma, ipma_size, 1)):
        struct.pack_into(">I", data, box, size + more)
    count = data[ipma + 18]
    data[ipma + 18] = count + 1
    data[ipma + 19 + count:ipma + 19 + count] = bytes([0x80 | properties + 1])
    data[ipco + ipco_size:ipco + ipco_size] = struct.pack(">I4sB", 9, b"irot", quarter_turns)
    return bytes(data)


def add_heics(rgb, gray, rgba):
    def heic(image, *flags):
        return converted(saved(image, "PNG"), (".png", ".heic"), "heif-enc", *flags, "-o", "OUT", "IN")
    exact = ("-L", "-p", "chroma=444", "--matrix_coefficients=0")
    add("heic_rgb.heic", heic(rgb, *exact), rgb, 1)
    add("heic_rgba.heic", heic(rgba, *exact), as_pil_reads(saved(rgba, "PNG")), 1)
    add("heic_gray.heic", heic(gray, *exact), gray.convert("RGB"), 2)
    large = Image.fromarray(scene(64, 96, 3, 5))  # smaller ones become a grid of one tile, whose sides are multiples of 64
    for turns in (1, 3):
        add(f"heic_rotated_{90 * turns}.heic", rotated(heic(large, *exact), turns), large.rotate(90 * turns, expand=True), 1)
    add("heic_lossy.heic", heic(large, "-q", "95", "-p", "chroma=444"), large, 24)


def xmp(orientation, as_element=False):
    inner = f"<tiff:Orientation>{orientation}</tiff:Orientation>" if as_element else ""
    attribute = "" if as_element else f' tiff:Orientation="{orientation}"'
    return (f'<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">'
            f'<rdf:Description xmlns:tiff="http://ns.adobe.com/tiff/1.0/"{attribute}>{inner}</rdf:Description>'
            f'</rdf:RDF></x:xmpmeta>').encode()


def png_with(data, extra, at_end=False):
    """Inserts chunks after the header, or before the end."""
    at = len(data) - 12 if at_end else 8 + 25
    return data[:at] + extra + data[at:]


def itxt(text, packed):
    return chunk(b"iTXt", b"XML:com.adobe.xmp\0" + bytes([packed, 0]) + b"\0\0" + (zlib.compress(text) if packed else text))


def raw_profile(block, keyword=b"exif"):
    digits = block.hex().encode()
    lines = b"\n".join(digits[i:i + 72] for i in range(0, len(digits), 72))
    return b"Raw profile type " + keyword + b"\0", b"\nexif\n" + b"%8d\n" % len(block) + lines + b"\n"


def with_marker(jpeg, data):
    return jpeg[:2] + b"\xff\xe1" + struct.pack(">H", len(data) + 2) + data + jpeg[2:]


def add_metadata(turned):
    """The expected pixels are those of the same orientation in EXIF, which PIL applies."""
    upright = lambda orientation: as_pil_reads(saved(turned, "PNG", exif=exif(orientation)))
    jpeg, png = saved(turned, "JPEG", quality=90, subsampling=0), saved(turned, "PNG")
    name = b"http://ns.adobe.com/xap/1.0/\0"
    for orientation in range(1, 9):
        turned_jpeg = as_pil_reads(saved(turned, "JPEG", quality=90, subsampling=0, exif=exif(orientation)))
        add(f"xmp_{orientation}.jpg", with_marker(jpeg, name + xmp(orientation, orientation % 2 == 0)), turned_jpeg,
            JPEG_TOLERANCE)
        add(f"xmp_{orientation}.png", png_with(png, itxt(xmp(orientation), orientation % 2 == 0), orientation > 4),
            upright(orientation))
    both = with_marker(saved(turned, "JPEG", quality=90, subsampling=0, exif=exif(6)), name + xmp(3))
    add("xmp_and_exif.jpg", both, as_pil_reads(both), JPEG_TOLERANCE)
    block = exif(6).tobytes()
    keyword, text = raw_profile(block)
    add("text_exif_packed.png", png_with(png, chunk(b"zTXt", keyword + b"\0" + zlib.compress(text))), upright(6))
    add("text_exif.png", png_with(png, chunk(b"tEXt", keyword + text), True), upright(6))
    keyword, text = raw_profile(exif(8).tobytes(), b"APP1")
    add("text_exif_app1.png", png_with(png, chunk(b"zTXt", keyword + b"\0" + zlib.compress(text))), upright(8))
    add("text_exif_and_xmp.png", png_with(png, chunk(b"tEXt", keyword + text) + itxt(xmp(3), 0)), upright(8))
    if features.check("webp"):
        data = saved(turned, "WEBP", lossless=True, xmp=xmp(6))
        add("xmp_6.webp", data, upright(6))


def runs_of(row, nibbles, mixed):
    """One row in run-length encoding. `mixed`: also five pixels as they are, which PIL misreads with 4 bits."""
    out, x = b"", 0
    while x < len(row):
        if mixed and x % 7 == 3 and x + 5 <= len(row):
            part = row[x:x + 5]
            data = bytes(part) if not nibbles else bytes(a << 4 | b for a, b in zip(part[::2], list(part[1::2]) + [0]))
            out += bytes([0, 5]) + data + bytes(len(data) % 2)
            x += 5
            continue
        if nibbles:  # two alternating indices
            end = x + 1
            while end < len(row) and end - x < 255 and row[end] == row[x + (end - x) % 2] or end == x + 1 < len(row):
                end += 1
            out += bytes([end - x, row[x] << 4 | (row[x + 1] if x + 1 < len(row) else 0)])
        else:
            end = x
            while end < len(row) and end - x < 255 and row[end] == row[x]:
                end += 1
            out += bytes([end - x, row[x]])
        x = end
    return out + b"\0\0"


def bmp_runs(indices, palette, bits, mixed=False, raster=None):
    height, width = indices.shape
    raster = raster or b"".join(runs_of(list(row), bits == 4, mixed) for row in indices[::-1]) + b"\0\1"
    colors = b"".join(bytes([b, g, r, 0]) for r, g, b in palette)
    info = struct.pack("<IiiHHIIiiII", 40, width, height, 1, bits, 1 if bits == 8 else 2, len(raster), 0, 0, len(palette), 0)
    offset = 14 + len(info) + len(colors)
    return b"BM" + struct.pack("<IHHI", offset + len(raster), 0, 0, offset) + info + colors + raster


def add_bitmaps(rgb, gray):
    for bits, colors in ((8, 200), (4, 16)):
        quantized = rgb.quantize(colors)
        indices, palette = np.asarray(quantized), np.reshape(quantized.getpalette()[:3 * colors], (-1, 3))
        for name, mixed in (("", False), ("_mixed", True)):
            add(f"bmp_rle{bits}{name}.bmp", bmp_runs(indices, palette, bits, mixed), palette[indices])
    shades = [(v, v, v) for v in (10, 90, 200)]
    # 4x3 from the bottom: two pixels and a move to (3, 1), one pixel, end of the row, a run that is too long.
    skipped = bmp_runs(np.zeros((3, 4), int), shades, 8, raster=b"\2\1\0\2\1\1\1\2\0\0\x09\2\0\1")
    add("bmp_rle8_skips.bmp", skipped, [[200] * 4, [10, 10, 10, 200], [90, 90, 10, 10]])
    one_bit = gray.convert("1")
    add_pil("pnm_bit.pbm", saved(one_bit, "PPM"))
    rows = "\n".join("".join("0" if v else "1" for v in row) for row in np.asarray(one_bit))
    add("pnm_bit_plain.pbm", f"P1 # plain\n{one_bit.width} {one_bit.height}\n{rows}\n".encode(), one_bit.convert("L"))


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
    add_metadata(turned)
    add_bitmaps(rgb, gray)
    if not sys.argv[1:] or any(word.startswith("tiff") for word in sys.argv[1:]):
        add_tiffs(rgb, gray, rgba, turned, wide, narrow)
    if not sys.argv[1:] or any(word.startswith("heic") for word in sys.argv[1:]):
        add_heics(rgb, gray, rgba)
    table = FOLDER / "cases.json"
    written = {case["file"] for case in CASES}
    kept = [case for case in json.loads(table.read_text()) if case["file"] not in written] if sys.argv[1:] else []
    table.write_text(json.dumps(kept + CASES, indent=1) + "\n")


main()
