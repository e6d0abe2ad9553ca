"""ResNet-18/34/50 in plain PyTorch with torchvision's module names and structure (bottlenecks have their stride on the 3x3),
and numbers that both sides make for themselves: tests/golden/hashed.h has the same formulas in C++, so weights and images
of any size are never stored."""
import numpy as np
import torch
from torch import nn

MASK = (1 << 64) - 1
GOLDEN = 0x9E3779B97F4A7C15


def mix(z):
    """The finaliser of splitmix64, over an array."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def key_of(name):
    """FNV-1a of the name."""
    key = 0xCBF29CE484222325
    for byte in name.encode():
        key = (key ^ byte) * 0x100000001B3 & MASK
    return key


def hashed(name, shape, mean=0.0, deviation=1.0):
    """Bell-shaped numbers, exact in f32: the sum of four 16-bit parts of a hash of the name and the element's number."""
    count = int(np.prod(shape))
    bits = mix(np.uint64(key_of(name)) + np.arange(1, count + 1, dtype=np.uint64) * np.uint64(GOLDEN))
    parts = sum((bits >> np.uint64(shift)) & np.uint64(0xFFFF) for shift in (0, 16, 32, 48))
    centerd = parts.astype(np.float64) - 131070.0
    return (mean + centerd * (deviation / 37837.0)).astype(np.float32).reshape(shape)


def sample_places(count):
    """Which 64 elements of a tensor are looked at."""
    return (mix(np.arange(1, 65, dtype=np.uint64) * np.uint64(GOLDEN)) % np.uint64(count)).astype(np.int64)


def images(name, shape):
    """(n, height, width, channels) as Tandem has them, for PyTorch (n, channels, height, width)."""
    return torch.from_numpy(hashed(name, shape)).permute(0, 3, 1, 2).contiguous()


def labels(count, classes):
    return torch.arange(count) * 7 % classes


class BasicBlock(nn.Module):
    expansion = 1

    def __init__(self, channels, width, stride, downsample):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, width, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.relu = nn.ReLU()
        self.downsample = downsample

    def forward(self, x):
        y = self.relu(self.bn1(self.conv1(x)))
        y = self.bn2(self.conv2(y))
        return self.relu(y + (x if self.downsample is None else self.downsample(x)))


class Bottleneck(nn.Module):
    expansion = 4

    def __init__(self, channels, width, stride, downsample):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, width, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3 = nn.Conv2d(width, 4 * width, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(4 * width)
        self.relu = nn.ReLU()
        self.downsample = downsample

    def forward(self, x):
        y = self.relu(self.bn1(self.conv1(x)))
        y = self.relu(self.bn2(self.conv2(y)))
        y = self.bn3(self.conv3(y))
        return self.relu(y + (x if self.downsample is None else self.downsample(x)))


BLOCKS = {18: (BasicBlock, (2, 2, 2, 2)), 34: (BasicBlock, (3, 4, 6, 3)), 50: (Bottleneck, (3, 4, 6, 3))}


class ResNet(nn.Module):
    def __init__(self, depth, classes):
        super().__init__()
        block, counts = BLOCKS[depth]
        self.conv1 = nn.Conv2d(3, 64, 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        self.relu = nn.ReLU()
        self.maxpool = nn.MaxPool2d(3, 2, 1)
        channels = 64
        for stage, count in enumerate(counts):
            width, layers = 64 << stage, []
            for i in range(count):
                stride, out = 2 if stage > 0 and i == 0 else 1, width * block.expansion
                downsample = None
                if stride != 1 or channels != out:
                    downsample = nn.Sequential(nn.Conv2d(channels, out, 1, stride, bias=False), nn.BatchNorm2d(out))
                layers.append(block(channels, width, stride, downsample))
                channels = out
            setattr(self, f"layer{stage + 1}", nn.Sequential(*layers))
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(channels, classes)

    def norms_before_relu(self):
        """The batch norm that each ReLU call follows, in the order of the calls."""
        norms = [self.bn1]
        for stage in (self.layer1, self.layer2, self.layer3, self.layer4):
            for block in stage:
                norms += [module for name, module in block.named_children() if name.startswith("bn")]
        return norms

    def forward(self, x):
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(torch.flatten(self.avgpool(x), 1))


class Cnn(nn.Module):
    """Tandem's small network (tandem/nn/cnn.h)."""

    def __init__(self, channels, width, classes):
        super().__init__()
        for i in range(6):
            out = width << i // 2
            setattr(self, f"conv{i + 1}", nn.Conv2d(channels, out, 3, 1, 1, bias=False))
            setattr(self, f"bn{i + 1}", nn.BatchNorm2d(out))
            channels = out
        self.relu, self.fc = nn.ReLU(), nn.Linear(channels, classes)

    def norms_before_relu(self):
        return [getattr(self, f"bn{i + 1}") for i in range(6)]

    def forward(self, x):
        for i in range(6):
            if i in (2, 4):
                x = nn.functional.max_pool2d(x, 2)
            x = self.relu(getattr(self, f"bn{i + 1}")(getattr(self, f"conv{i + 1}")(x)))
        return self.fc(x.mean((2, 3)))


def make_resnet(depth, classes):
    """torchvision's own where it is installed."""
    try:
        import torchvision
    except ImportError:
        return ResNet(depth, classes)
    return getattr(torchvision.models, f"resnet{depth}")(num_classes=classes)


def hashed_value(salt, name, tensor):
    """What a tensor of a state dict is filled with; by its name and shape."""
    shape, seed = tuple(tensor.shape), salt + name
    if name.endswith("num_batches_tracked"):
        return tensor.clone()
    if name.endswith("running_var"):
        return torch.from_numpy(hashed(seed, shape, 1.0, 0.1))
    if len(shape) == 4 and ".block." in name:  # mobile networks: variance 2 / fan in
        return torch.from_numpy(hashed(seed, shape, 0.0, np.sqrt(2.0 / (shape[1] * shape[2] * shape[3]))))
    if len(shape) == 4:  # convolutions: variance 2 / fan out
        return torch.from_numpy(hashed(seed, shape, 0.0, np.sqrt(2.0 / (shape[0] * shape[2] * shape[3]))))
    if len(shape) == 2:
        return torch.from_numpy(hashed(seed, shape, 0.0, 0.05))
    is_scale = name.endswith("weight")
    return torch.from_numpy(hashed(seed, shape, 1.0 if is_scale else 0.0, 0.1))


def hashed_state(model, salt):
    return {name: hashed_value(salt, name, tensor) for name, tensor in model.state_dict().items()}


def nudge_bias(norm, pre, is_far):
    """Raises the bias of each channel of a batch norm in steps of 1/128 until is_far(its values in `pre`). Returns the values
    with the new biases, and the steps."""
    old, moved = norm.bias.data.clone(), pre.clone()
    steps = np.zeros(len(old), np.uint8)
    for channel in range(len(old)):
        base = old[channel].item()
        for k in range(256):
            bias = float(np.float32(base + k / 128.0))
            moved[:, channel] = pre[:, channel] + (bias - base)
            if is_far(moved[:, channel]):
                break
        else:
            raise SystemExit("no bias keeps away from the kinks")
        steps[channel], norm.bias.data[channel] = k, bias
    return moved, steps


def summaries(prefix, tensors):
    """Norms and samples of named tensors."""
    arrays = {name: np.asarray(t.detach().numpy(), np.float64).reshape(-1) for name, t in tensors.items()}
    return {prefix + "_norms": np.array([np.linalg.norm(a) for a in arrays.values()]),
            prefix + "_samples": np.stack([a[sample_places(a.size)] for a in arrays.values()]).astype(np.float32)}


def one_step(model, x, classes):
    model.train()
    logits = model(x)
    loss = nn.functional.cross_entropy(logits, labels(len(x), classes))
    loss.backward()
    return logits, loss
