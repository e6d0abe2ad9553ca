"""A DataLoader over a folder of JPEGs (500×500, quality 90), with one worker per core, for training batches of 224×224."""
import os
import random
import tempfile

import measure
import torch_photos

BATCH = 64


def write_photos(folder, side, count):
    """`count` copies of one smooth image; the content hardly affects the decoding time."""
    from PIL import Image
    generator = random.Random(1)
    small = Image.new("RGB", (side // 16, side // 16))
    small.putdata([tuple(generator.randrange(256) for _ in range(3)) for _ in range((side // 16) ** 2)])
    files = [os.path.join(folder, f"{i}.jpg") for i in range(count)]
    small.resize((side, side), Image.BICUBIC).save(files[0], quality=90)
    with open(files[0], "rb") as first:
        jpeg = first.read()
    for path in files[1:]:
        with open(path, "wb") as file:
            file.write(jpeg)
    return files


def run(work, device, budget_s):
    import torch
    if work.decoding != "exact":
        yield "PyTorch", "it has no scaled decoding"
        return
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as folder:
        files = write_photos(folder, work.side, BATCH * measure.cores())
        photos = torch_photos.Photos(files, [0] * len(files), torch_photos.training_transform(224))
        loader = torch.utils.data.DataLoader(photos, BATCH, shuffle=True, num_workers=measure.cores(), persistent_workers=True)

        def epoch():
            count = sum(len(images) for images, _ in loader)
            if count != len(files):
                raise RuntimeError(f"expected {len(files)} images, got {count}")
        yield "PyTorch", measure.of_all_samples(measure.time_cpu(epoch, budget_s), len(files))


measure.run("PyTorch", run)
