"""Shared by the peers for photographs: ResNet-18 and the transforms, from torchvision if it is installed, else the same
layers in plain PyTorch and the same transforms in Pillow."""
import functools
import math
import random
import time

MEAN, STD = (.485, .456, .406), (.229, .224, .225)


def resnet18(classes=1000):
    try:
        from torchvision.models import resnet18 as make
        return make(num_classes=classes)
    except ImportError:
        return plain_resnet18(classes)


def network(name, classes=1000):
    """ResNet-18, or a network of torchvision."""
    if name == "resnet18":
        return resnet18(classes)
    import torchvision
    return getattr(torchvision.models, name)(num_classes=classes)


def plain_resnet18(classes):
    from torch import nn

    class Block(nn.Module):
        def __init__(self, inputs, outputs, stride):
            super().__init__()
            self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
            self.bn1, self.relu = nn.BatchNorm2d(outputs), nn.ReLU(inplace=True)
            self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
            self.bn2, self.downsample = nn.BatchNorm2d(outputs), None
            if stride > 1 or inputs != outputs:
                self.downsample = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

        def forward(self, x):
            y = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
            return self.relu(y + (self.downsample(x) if self.downsample else x))

    stages = [nn.Sequential(Block(a, b, 1 if a == b else 2), Block(b, b, 1)) for a, b in ((64, 64), (64, 128), (128, 256), (256, 512))]
    model = nn.Sequential(nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1), *stages,
                          nn.AdaptiveAvgPool2d(1), nn.Flatten())
    model.add_module("fc", nn.Linear(512, classes))
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
