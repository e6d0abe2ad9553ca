#!/usr/bin/env python3
"""make_seeds.py: writes small inputs for the fuzz targets into fuzz/seeds. Needs Pillow (python3-pil) for the images.

Inputs that a fuzzer found, and those of the http_parser, base64, exif and request_images targets, are written by hand.
"""
import gzip
import hashlib
import io
import json
import os
import pickle
import struct
import tarfile
import zipfile
import zlib

from PIL import Image

SEEDS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "seeds")


def write(target, name, content):
    os.makedirs(os.path.join(SEEDS, target), exist_ok=True)
    with open(os.path.join(SEEDS, target, name), "wb") as file:
        file.write(content if isinstance(content, bytes) else content.encode())


def images():
    side = 16
    rgb = Image.frombytes("RGB", (side, side), bytes((7 * i * i + 3 * i) % 256 for i in range(3 * side * side)))
    exif = Image.Exif()
    exif[0x0112] = 6
    for name, image in {"rgb": rgb, "gray": rgb.convert("L"), "rgba": rgb.convert("RGBA"), "palette": rgb.quantize(4), "bits": rgb.convert("1"),
                        "cmyk": rgb.convert("CMYK"), "odd": rgb.crop((0, 0, 9, 5)), "deep": rgb.convert("L").convert("I").point(lambda x: x * 257)}.items():
        for target, ending, modes, choices in (
                ("image_bmp", "bmp", "rgb gray rgba palette bits odd", {"": {}}),
                ("image_png", "png", "rgb gray rgba palette bits odd deep", {"": {}, "_exif": {"exif": exif}}),
                ("image_jpeg", "jpg", "rgb gray cmyk odd", {"": {"quality": 40}, "_444": {"quality": 40, "subsampling": 0},
                                                            "_progressive": {"quality": 40, "progressive": True}, "_exif": {"quality": 30, "exif": exif}}),
                ("image_pnm", "ppm", "rgb gray bits odd", {"": {}}),
                ("image_tiff", "tif", "rgb gray rgba palette bits cmyk odd", {"": {}, "_lzw": {"compression": "tiff_lzw"}, "_deflate": {"compression": "tiff_adobe_deflate"},
                                                                            "_packbits": {"compression": "packbits"}}),
                ("image_webp", "webp", "rgb rgba odd", {"": {"quality": 30}, "_lossless": {"lossless": True}, "_exif": {"quality": 20, "exif": exif}})):
            for suffix, options in choices.items():
                if name not in modes.split():
                    continue
                file = io.BytesIO()
                try:
                    image.save(file, {"jpg": "JPEG", "tif": "TIFF", "ppm": "PPM"}.get(ending, ending.upper()), **options)
                except (OSError, ValueError):
                    continue
                write(target, f"{name}{suffix}.{ending}", file.getvalue())


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def packed_set(files, options=b"{}"):
    data, entries, names = bytes(64), b"", b""
    for name, content in sorted(files.items()):
        data += bytes(-len(data) % 64)
        names += name
        entries += struct.pack("<QQII", len(data), len(content), crc32c(content), len(names))
        data += content
    index = entries + names + options
    fields = (len(data) + len(index), len(data), len(files), len(names), len(options), crc32c(index), 0)
    header = b"TANDEMPK" + struct.pack("<II5QII", 1, 0, *fields)
    return header[:12] + struct.pack("<I", crc32c(header)) + header[16:] + data[64:] + index


def packed_sets():
    for name, files in {"one": {b"a.jpg": b"image"}, "empty": {b"a.jpg": b""},
                        "folders": {b"train/cat/1.jpg": b"one", b"train/cat-2/1.jpg": b"two", b"val/cat/1.jpg": b"three", b"x": b"four"}}.items():
        write("packed_set", name, packed_set(files, b'{"store":"original"}'))


def safetensors(tensors, metadata=None):
    header, data = {}, b""
    if metadata is not None:
        header["__metadata__"] = metadata
    for name, dtype, shape, content in tensors:
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(content)]}
        data += content
    text = json.dumps(header, separators=(",", ":")).encode()
    return struct.pack("<Q", len(text)) + text + data


def weights():
    one = ("w", "F32", [2], struct.pack("<2f", 1, -2))
    files = {"one": safetensors([one]), "empty": safetensors([]), "metadata": safetensors([one], {"model": "mlp"}),
             "zero": safetensors([("z", "F32", [0, 3], b""), one]),
             "digest": safetensors([one], {"tandem.sha256": hashlib.sha256(one[3]).hexdigest()}),
             "types": safetensors([(name, name, [1, 1], bytes(size)) for name, size in
                                   (("F64", 8), ("BF16", 2), ("U8", 1), ("I32", 4), ("I64", 8), ("F16", 2), ("BOOL", 1), ("I8", 1), ("I16", 2), ("U16", 2))])}
    for name, content in files.items():
        write("safetensors", name, content)
        write("inspect", name + ".safetensors", content)
        frame = b"TandemCheckpoint00000001" + f"{len(content):016x}".encode() + hashlib.sha256(content).hexdigest().encode()
        write("checkpoint", name, frame + content)
    for protocol in range(6):
        value = {"a": [1, -7, 2**40, 2**80, 1.5, True, None], "b": ("x", "\u00e9\u4e2d", b"\0\1"), "c": {1, 2}, "d": frozenset([3]), "e": bytearray(b"ab")}
        write("pickle", f"values{protocol}", pickle.dumps(value, protocol))
        write("pickle", f"call{protocol}", pickle.dumps(complex(1, 2), protocol))
    write("pickle", "memo", b"(dp0\nS'a'\np1\n(lp2\nI1\naI2\nasVb\n(tsg1\nF1.5\ns.")


def archives():
    for name, method in (("stored", zipfile.ZIP_STORED), ("deflated", zipfile.ZIP_DEFLATED)):
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w", method) as archive:
            archive.writestr(zipfile.ZipInfo("a/"), b"")
            archive.writestr(zipfile.ZipInfo("a/one"), b"one" * 9, method)
            archive.writestr(zipfile.ZipInfo("two"), b"", method)
        write("zip", name, file.getvalue())
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive, archive.open(zipfile.ZipInfo("big"), "w", force_zip64=True) as entry:
        entry.write(b"zip64")
    write("zip", "zip64", file.getvalue())
    for name, content in {"text": b"text " * 5, "empty": b"", "idx": b"\0\0\x08\1\0\0\0\2ab"}.items():
        write("gzip", name, gzip.compress(content, mtime=0))
    write("gzip", "members", gzip.compress(b"one", mtime=0) + gzip.compress(b"two", mtime=0))
    file = io.BytesIO()
    with gzip.GzipFile("name", "wb", 9, file, 0) as stream:
        stream.write(b"with a name")
    write("gzip", "named", file.getvalue())
    for name, kind in (("ustar", tarfile.USTAR_FORMAT), ("gnu", tarfile.GNU_FORMAT)):
        file = io.BytesIO()
        with tarfile.open(fileobj=file, mode="w", format=kind) as archive:
            for path, content in (("folder/one", b"1"), ("p" * 90 + "/" + "q" * 90, b"")):
                info = tarfile.TarInfo(path)
                info.size = len(content)
                if kind == tarfile.USTAR_FORMAT or len(path) < 100:
                    archive.addfile(info, io.BytesIO(content))
        write("tar", name, file.getvalue()[:1536 if kind == tarfile.USTAR_FORMAT else 1024])
    for code, size in ((8, 1), (12, 4), (13, 4), (14, 8)):
        write("idx", f"type{code}", bytes([0, 0, code, 2, 0, 0, 0, 1, 0, 0, 0, 2]) + bytes(range(2 * size)))
    write("idx", "compressed", gzip.compress(bytes([0, 0, 8, 1, 0, 0, 0, 3, 1, 2, 3]), mtime=0))
    write("idx", "zero", bytes([0, 0, 8, 1, 0, 0, 0, 0]))
    write("npy", "matrix", b"\1" + struct.pack("<4f", 1, -2.5, 3e-40, float("nan")))


def field(number, content):
    if isinstance(content, int):
        return bytes([number << 3]) + varint(content)
    content = content.encode() if isinstance(content, str) else content
    return varint(number << 3 | 2) + varint(len(content)) + content


def varint(value):
    value &= (1 << 64) - 1
    return bytes([value]) if value < 128 else bytes([value % 128 + 128]) + varint(value >> 7)


def onnx():
    tensor = field(1, b"\2") + field(2, 1) + field(8, "w") + field(9, struct.pack("<2f", 1, 2))
    typed = field(1, b"\2") + field(2, 7) + field(8, "n") + field(7, b"\1\2")
    floats = field(1, 2) + field(2, 1) + field(8, "f") + field(4, struct.pack("<2f", 3, 4))
    doubles = field(1, 1) + field(2, 11) + field(8, "d") + field(10, struct.pack("<d", 3))
    elsewhere = field(1, b"\2") + field(2, 1) + field(8, "x") + field(13, field(1, "location") + field(2, "w.bin")) + field(14, 1)
    value = lambda name: field(1, name) + field(2, field(1, field(1, 1) + field(2, field(1, field(1, 2)) + field(1, field(2, "n")))))
    attributes = (field(1, "a") + b"\x15" + struct.pack("<f", 0.5) + field(20, 1), field(1, "i") + field(3, 3) + field(20, 2),
                  field(1, "t") + field(4, "text") + field(20, 3), field(1, "w") + field(5, tensor) + field(20, 4),
                  field(1, "fs") + field(7, struct.pack("<2f", 1, 2)) + field(20, 6), field(1, "is") + field(8, b"\1\2") + field(20, 7))
    inner = field(1, "g") + field(6, field(2, "inner") + field(12, value("y"))) + field(20, 5)
    node = field(1, "x") + field(1, "w") + field(2, "y") + field(3, "first") + field(4, "Mul")
    graph = lambda *nodes: field(2, "graph") + b"".join(field(1, n) for n in nodes) + field(5, tensor) + field(11, value("x")) + field(12, value("y"))
    model = lambda g: field(1, 8) + field(2, "tandem") + field(3, "1") + field(7, g) + field(8, field(1, "") + field(2, 17)) + field(14, field(1, "k") + field(2, "v"))
    write("onnx", "model", model(graph(node)))
    for i, attribute in enumerate((*attributes, inner)):
        write("onnx", f"attribute{i}", model(graph(node + field(5, attribute) + field(7, "domain"))))
    write("onnx", "constants", model(graph(node) + field(5, typed) + field(5, elsewhere) + field(5, floats) + field(5, doubles)) + field(25, b""))
    write("onnx", "cycle", model(graph(field(1, "z") + field(2, "y") + field(4, "Relu"), field(1, "y") + field(2, "z") + field(4, "Relu"))))


TEXTS = {
    "toml": ["a = 1\nb = -0x1f\nc = [1, 2.5e3, inf, nan]\n[t]\nx.y = 'l'\n[[u]]\nd = 1979-05-27T07:32:00.5Z\n[[u]]\n", 'e = """m\n\\u00e9 \\\n  x"""\n"q k" = {a = true, b = {}}',
             "t = 07:32:00\nd = 1979-05-27\no = 0o17\nb = 0b1_0\nl = '''x\ny'''\n", "d = 1979-05-27 07:32:00+01:30 # c\r\nf = +1e-6\n", 'k = "\\u007f\\b\\t\\n\\f\\r\\"\\\\\\U0001f600"\n'],
    "config": ["model = \"mlp\"\nlayers = [784, 32, 10]\nepochs = 3\nlr = 0.1\n", "model = \"resnet18\"\naugment = \"rotate -10 10, shift -2 2\"\nbatch-size = 64\n",
               "optimizer = \"adam\"\nschedule = \"cosine\"\nseed = 7\n", "dataa = \"x\"\n[t]\nepochs = 1\n"],
    "recipe": ["none", "digits", "photo", "rotate -10 10 cubic, shift -2 2, skew -0.1 0.1, noise 0 0.1, zoom 0.9 1.1 nearest", "crop 0.08 1, flip 0.5",
               "crop 0.5 1, jitter 0.4 0.4 0.4 0.1", "blur 0.5 ring", "blur 0.5 1 2 1; 2 4 2; 1 2 1", "1 0 -1; 2 0 -2; 1 0 -1", "gradient 1 -1", "resize, vertical_flip 0.5", "center 256, rotation 10, perspective 0.5 0.5, erase 0.25 0.02 0.3 0.3 3.3",
               "letterbox 128, jitter 0.4 0.4 0.4 0.1, bicubic", "crop 0.2 1 0.75 1.33, trivial_augment", "resize, randaugment 2 9, bilinear",
               "rotate -1 1 linear", "rotate -1 1 sharp", "rotate 1", "own0, own1 -1 1, own2 0 1 2 3", "own1 1"],
    "values": ["0", "-12", "3.5e-3", "inf", "1,2,3", "640x480", "cpu", "cuda:1", "f32", "bf16", "127.0.0.1:8080", "[::1]:80", "localhost:0", "unix:/run/x", "8080",
               "18:30", "2026-11-17T18:30", "2026-11-17T18:30:05Z", "+90", "1790003600"],
    "text": ["plain words, \"quoted\"", "\u00e9\u4e2d\u6587\U0001f600 e\u0301", "<a href='x'>&amp;</a>", "it's\\ $HOME\n", "\x1b[31mred\x07", "long " * 12],
    "study_cases": ["5", "3x7", "8x128", "784,200,10 batch 16", "cnn batch 32", "resnet18 224 batch 32", "784x200 batch 16 dW", "1024x1024 f32 3x3", "1000x1000 i32",
                    "perceptron-and-kernels"],
}


def profiles():
    """A profile for `tandem grade`, and some with one mistake each."""
    head = {"name": '"p"', "title": '"P"', "seed": "3"}
    tables = {"curve": {"full": "1.2", "zero": "10"}, "limits": {"seconds": "85", "compile_seconds": "60"}}
    part = {"name": '"max"', "title": '"M"', "weight": "10", "cases": '["1x1 i32"]', "speed": "0.4", "reference": '"simd"', "threads": "1", "timed": '["1x1 i32"]',
            "launch": '["<<<1>>>"]', "forbidden": '["sleep"]'}
    lines = lambda table: "".join(f"{key}={value}\n" for key, value in table.items())
    changes = {"whole": {}, "other_key": {"titel": '"t"'}, "no_name": {"name": '"A B"'}, "no_number": {"weight": '"x"'}, "no_whole": {"threads": "-1"}, "no_list": {"cases": "3"},
               "no_text": {"cases": "[1]"}, "same_case": {"cases": '["1x1 i32","1x1 i32"]'}, "no_case": {"cases": '["x"]'}, "no_cases": {"cases": "[]"}, "no_version": {"reference": '"x"'},
               "not_timed": {"timed": '["2x2 i32"]'}, "no_task": {"name": '"x"'}, "other_task": {"task": '"x"'}, "no_speed": {"speed": "0"}}
    for name, change in changes.items():
        write("study_cases", "profile_" + name, lines(head) + "".join(f"[{key}]\n" + lines(table) for key, table in tables.items()) + "[[part]]\n" + lines({**part, **change}))
    for name, more in {"curve": "[curve]\nfull=5\nzero=2\n", "curve_full": "[curve]\nfull=100\n", "no_table": "curve=3\n", "no_parts": "part=3\n", "no_part": "part=[3]\n",
                       "same_part": 2 * ("[[part]]\n" + lines(part))}.items():
        write("study_cases", "profile_" + name, lines(head) + more)


def records():
    fact = {"cpu": "2 cores"}
    study = {"study": "max", "machine": fact, "rows": [{"case": "1000x1000 i32", "version": "parallel", "device": "cpu", "median_ms": 0.5, "agrees": True, "threads": 2}]}
    report = {"title": "t", "command": "c", "facts": fact, "provenance": {}, "val_name": "v", "test_name": "t", "chosen_on": "v", "kept_epoch": 1, "warnings": ["w"],
              "classes": ["a", "b"], "confusion": [[1, 0], [0, 1]], "epochs": [{"epoch": 1, "train_loss": 0.5}],
              "cross_validation": {"folds": [{"fold": 1, "training_images": 2, "images": 1, "correct": 1}]}}
    time = {"student_ms": 1, "reference_ms": 2, "ratio": 0.5, "spread": 0.1, "too_noisy": False, "points": 1, "of": 1}
    part = {"part": "max", "title": "Max", "task": "max", "points": 1, "of": 2, "not_graded": 0, "cases": [{"case": "4x4 i32", "points": 1, "of": 1, "time": time}]}
    grade = {"student": "s", "profile": "p", "title": "t", "profile_sha256": "", "submission_sha256": "", "seed": 1, "full_up_to": 1, "zero_from": 4, "elapsed_s": 1,
             "missing_protections": [], "machine": fact, "provenance": {}, "parts": [part]}
    data = {"classes": ["a"], "training_count": 1, "validation_count": 0, "labels": "", "training": [[0, "x.jpg"]], "validation": [], "unreadable": []}
    status = {"state": "finished", "message": "m", "device": "cpu", "epochs": 3, "test_accuracy": 0.5, "warnings": ["w"]}
    report["epochs"].append({"epoch": 2, "metrics": {"auc": 0.5}})
    report["range_test"] = {"chosen": 0.1, "rates": [0.1], "losses": [2]}
    # The list with which the target compares, and some that differ from it in one thing.
    same = {"classes": ["a", "b"], "training_count": 1, "validation_count": 1, "labels": "", "training": [[0, "x.jpg"]], "validation": [[1, "y.jpg"]], "unreadable": []}
    for name, change in {"same": {}, "class": {"classes": ["a", "c"]}, "new_class": {"classes": ["a", "b", "c"]}, "new": {"training": [[0, "x.jpg"], [0, "z.jpg"]]},
                         "missing": {"validation": []}, "label": {"training": [[1, "x.jpg"]]}, "set": {"training": [[0, "x.jpg"], [1, "y.jpg"]], "validation": []},
                         "count": {"training_count": 2}, "validation_count": {"validation_count": 2}, "labels": {"labels": "0"}, "wrong_label": {"training": [[9, "x.jpg"]]}}.items():
        write("records", "data_" + name, json.dumps({**same, **change}))
    for name, value in (("study", study), ("studies", {"studies": [study]}), ("report", report), ("grade", grade), ("data", data), ("status", status)):
        write("records", name, json.dumps(value, separators=(",", ":")))


def decode_protocol():
    """Requests of tandem/serve/decode_protocol.h, some followed by a reply."""
    chunk = lambda name, data: struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
    rows = b"".join(b"\0" + bytes(range(9 * row, 9 * row + 9)) for row in range(2))
    image = (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 3, 2, 8, 2, 0, 0, 0)) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))
    input_task, picture, info, box = range(4)

    def request(task, transform=b"", height=0, width=0, channels=0, max_pixels=1000, image=image, x=0, y=0, min_height=0, min_width=0, rgb=0):
        return struct.pack("<IIqqqqQqqqqQ", task, len(transform), height, width, channels, max_pixels, len(image), x, y, min_height, min_width, rgb) + transform + image

    def reply(is_error=0, kind=0, height=0, width=0, channels=0, size=0):
        return struct.pack("<IIqqqQ", is_error, kind, height, width, channels, size) + bytes(48)
    seeds = {"input": request(input_task, b"", 4, 5, 3) + request(input_task, b"", 4, 5, 3), "photo": request(input_task, b"resize 9, crop 8 8", 8, 8, 3),
             "picture": request(picture) + request(picture, rgb=1), "info": request(info), "box": request(box, height=1, width=2, x=1, y=0, min_height=1, min_width=1),
             "too_large": request(picture, max_pixels=3), "damaged": request(picture, image=image[:40]) + request(info, image=b"x"), "cut_off": request(picture)[:-9],
             "impossible": request(7), "no_transform": request(picture)[:4] + b"\xff" * 8 + request(picture)[12:], "no_box": request(box, height=0, width=1)}
    replies = {"error": reply(1, 1, size=20), "long_error": reply(1, 1, size=9999), "size": reply(height=2, width=2, channels=1, size=4), "info": reply(height=2, width=2, channels=3),
               "no_image": reply(height=-1, width=2, channels=3), "wide": reply(height=2, width=9, channels=3, size=54)}
    for name, task in (("input", input_task), ("picture", picture), ("info", info), ("box", box)):
        before = request(task, height=2, width=2, channels=1, image=b"")
        for kind, after in replies.items():
            seeds[f"reply_{name}_{kind}"] = before + after
    for name, content in seeds.items():
        write("decode_protocol", name, content)


def texts():
    for target, all_texts in TEXTS.items():
        for i, text in enumerate(all_texts):
            write(target, f"text{i}", text)


images()
weights()
archives()
packed_sets()
onnx()
profiles()
records()
decode_protocol()
texts()
