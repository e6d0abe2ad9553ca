"""PyTorch augmenting images. On the GPU: an affine map (rotation, shift, skew) and noise sampled for every image, with affine_grid and
grid_sample on floats already on the device. On the CPU: torchvision's RandomAffine on single images in a DataLoader, one worker per core."""
import math

import measure


def augment(images, bounds):
    """Every image with its own samples within ±bounds: degrees, pixels, tilt, and the maximum noise."""
    import torch
    degrees, pixels, tilt, noise = bounds
    count, _, height, width = images.shape

    def sample(bound):
        return (torch.rand(count, device=images.device) * 2 - 1) * bound

    angle, skew = sample(math.radians(degrees)), sample(tilt)
    cosine, sine = torch.cos(angle), torch.sin(angle)
    right, down = sample(2 * pixels / width), sample(2 * pixels / height)
    maps = torch.stack([cosine, cosine * skew - sine, right, sine, sine * skew + cosine, down], 1).view(count, 2, 3)
    grid = torch.nn.functional.affine_grid(maps, images.shape, align_corners=False)
    moved = torch.nn.functional.grid_sample(images, grid, align_corners=False)
    amount = torch.rand(count, 1, 1, 1, device=images.device) * noise
    return (moved + (torch.rand_like(moved) * 2 - 1) * amount).clamp(0, 1)


def on_gpu(work, budget_s):
    import torch
    torch.manual_seed(1)
    with torch.no_grad():
        sets = [torch.rand(work.batch, 1, work.rows, work.columns, device="cuda") for _ in range(measure.SETS)]
        off = (augment(sets[0], (0, 0, 0, 0)) - sets[0]).abs().max().item()
        if not off <= 1e-3:
            raise RuntimeError(f"images that should not change differ by {off:g}")
        calls = [lambda images=images: augment(images, measure.AUGMENT_BOUNDS) for images in sets]
        yield "PyTorch", measure.of_all_samples(measure.time_torch(calls, budget_s), work.batch)


class Images:
    """A data set of random images that are augmented on access."""

    def __init__(self, work, count, transform):
        import torch
        self.images, self.transform = torch.rand(count, 1, work.rows, work.columns), transform

    def __len__(self):
        return len(self.images)

    def __getitem__(self, i):
        return self.transform(self.images[i])


def on_cpu(work, budget_s):
    import torch
    from torchvision.transforms import v2
    degrees, pixels, tilt, _ = measure.AUGMENT_BOUNDS
    transform = v2.RandomAffine(degrees, translate=(pixels / work.columns, pixels / work.rows), shear=math.degrees(math.atan(tilt)))
    images = Images(work, 20000, transform)
    loader = torch.utils.data.DataLoader(images, work.batch, num_workers=measure.cores(), persistent_workers=True)

    def epoch():
        count = sum(len(batch) for batch in loader)
        if count != len(images):
            raise RuntimeError(f"expected {len(images)} images, got {count}")
    yield "torchvision", measure.of_all_samples(measure.time_cpu(epoch, budget_s), len(images))


def run(work, device, budget_s):
    yield from on_cpu(work, budget_s) if device == "cpu" else on_gpu(work, budget_s)


if __name__ == "__main__":
    measure.run("PyTorch", run)
