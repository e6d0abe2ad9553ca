"""Shared by the peers for photographs: residual networks and the transforms, from torchvision if it is installed, else the same
layers in plain PyTorch and the same transforms in Pillow."""
import functools
import math
import random
import time

MEAN, STD = (.485, .456, .406), (.229, .224, .225)


def resnet18(classes=1000):
    return network("resnet18", classes)


def network(name, classes=1000):
    """A network of torchvision; without torchvision ResNet-18 or ResNet-50 in plain PyTorch."""
    try:
        import torchvision
        return getattr(torchvision.models, name)(num_classes=classes)
    except ImportError:
        if name not in ("resnet18", "resnet50"):
            raise
        return plain_resnet(name == "resnet50", classes)


def plain_resnet(bottlenecks, classes):
    from torch import nn

    class Block(nn.Module):
        """Two 3×3 convolutions, or a bottleneck of three."""

        def __init__(self, inputs, width, stride):
            super().__init__()
            outputs = 4 * width if bottlenecks else width
            # Kernel, channels, stride of each; torchvision's bottlenecks have their stride in the 3×3 one.
            shapes = [(1, inputs, width, 1), (3, width, width, stride), (1, width, outputs, 1)] if bottlenecks else \
                [(3, inputs, width, stride), (3, width, width, 1)]
            self.convs = nn.ModuleList(nn.Conv2d(a, b, k, s, k // 2, bias=False) for k, a, b, s in shapes)
            self.norms = nn.ModuleList(nn.BatchNorm2d(b) for _, _, b, _ in shapes)
            self.relu, self.downsample = nn.ReLU(inplace=True), None
            if stride > 1 or inputs != outputs:
                self.downsample = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

        def forward(self, x):
            y = x
            for conv, norm in zip(self.convs[:-1], self.norms[:-1]):
                y = self.relu(norm(conv(y)))
            y = self.norms[-1](self.convs[-1](y))
            return self.relu(y + (self.downsample(x) if self.downsample else x))

    expansion, blocks = (4, (3, 4, 6, 3)) if bottlenecks else (1, (2, 2, 2, 2))
    stages, inputs = [], 64
    for stage, count in enumerate(blocks):
        width = 64 << stage
        for block in range(count):
            stages.append(Block(inputs, width, 2 if stage > 0 and block == 0 else 1))
            inputs = width * expansion
    model = nn.Sequential(nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1), *stages,
                          nn.AdaptiveAvgPool2d(1), nn.Flatten())
    model.add_module("fc", nn.Linear(inputs, classes))
    for module in model.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
    return model


def freeze(model):
    """All but the last layer; in train mode the norms' statistics still move."""
    for name, parameter in model.named_parameters():
        parameter.requires_grad = name.startswith("fc.")
    return model


@functools.lru_cache
def onednn_is_faster(name="resnet18"):
    """Whether a network is faster on this CPU with oneDNN than without, measured on the second of two batches."""
    import torch
    if not torch.backends.mkldnn.is_available():
        return False
    seconds = {}
    for enabled in (True, False):
        layout = torch.channels_last if enabled else torch.contiguous_format
        model, images = network(name).eval().to(memory_format=layout), torch.randn(8, 3, 224, 224).to(memory_format=layout)
        with torch.backends.mkldnn.flags(enabled=enabled), torch.inference_mode():
            model(images)
            start = time.perf_counter()
            model(images)
            seconds[enabled] = time.perf_counter() - start
    return seconds[True] < seconds[False]


def training_transform(size):
    try:
        from torchvision import transforms as T
        return T.Compose([T.RandomResizedCrop(size), T.RandomHorizontalFlip(), T.ToTensor(), T.Normalize(MEAN, STD)])
    except ImportError:
        return PlainTransform(size, True)


def evaluation_transform(size):
    try:
        from torchvision import transforms as T
        return T.Compose([T.Resize((size, size)), T.ToTensor(), T.Normalize(MEAN, STD)])
    except ImportError:
        return PlainTransform(size, False)


class PlainTransform:
    """torchvision's transforms in Pillow: a random crop (0.08 to 1 of the area, aspect ratio 3/4 to 4/3) or the whole image, resized,
    randomly flipped, as normalized floats."""

    def __init__(self, size, training):
        self.size, self.training = size, training

    def box(self, width, height):
        for _ in range(10):
            area, ratio = width * height * random.uniform(0.08, 1), math.exp(random.uniform(math.log(3 / 4), math.log(4 / 3)))
            w, h = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
            if 0 < w <= width and 0 < h <= height:
                left, top = random.randint(0, width - w), random.randint(0, height - h)
                return left, top, left + w, top + h
        return 0, 0, width, height

    def __call__(self, image):
        import numpy
        import torch
        from PIL import Image
        if self.training:
            image = image.crop(self.box(*image.size))
        image = image.resize((self.size, self.size), Image.BILINEAR)
        if self.training and random.random() < 0.5:
            image = image.transpose(Image.FLIP_LEFT_RIGHT)
        pixels = torch.from_numpy(numpy.array(image)).permute(2, 0, 1).contiguous().float().div(255)
        return pixels.sub_(torch.tensor(MEAN).view(3, 1, 1)).div_(torch.tensor(STD).view(3, 1, 1))


class Photos:
    """A data set of files that are decoded and transformed on access, like torchvision's ImageFolder."""

    def __init__(self, files, labels, transform):
        self.files, self.labels, self.transform = files, labels, transform

    def __len__(self):
        return len(self.files)

    def __getitem__(self, i):
        from PIL import Image
        with open(self.files[i], "rb") as file:
            return self.transform(Image.open(file).convert("RGB")), self.labels[i]
