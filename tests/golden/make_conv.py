"""Stored cases for convolution, batch norm, pooling and smoothed cross-entropy with their gradients, from PyTorch in f64.

params["op"] names the operation; arrays are as Tandem has them: images NHWC, weights (out, ky, kx, channels / groups). A case
holds the inputs, `expected`, `grad_out` and for every differentiable input `x` its `grad_x`; batch norm in training also holds
the running statistics after the call. Inputs and grad_out are exact in f32 and stored so.

    python3 tests/golden/make_conv.py
"""
import numpy as np
import torch
import torch.nn.functional as F

from store import Store

store = Store("conv")
rng = np.random.default_rng(5)


def in_f32(value):
    return np.asarray(value, np.float32).astype(np.float64)


def normal(*shape, scale=1.0):
    return in_f32(scale * rng.standard_normal(shape))


def nchw(t):
    return t.permute(0, 3, 1, 2)


def nhwc(t):
    return t.permute(0, 2, 3, 1)


def add(op, call, inputs, constants=None, after=None, detail="", **params):
    """call(*tensors of inputs) -> result; `constants` get no gradient; `after()` gives arrays that the call changed."""
    tensors = {name: torch.tensor(value, requires_grad=True) for name, value in inputs.items()}
    result = call(*tensors.values())
    grad_out = torch.tensor(normal(*result.shape))
    result.backward(grad_out)
    arrays = {name: t.detach().numpy().astype(np.float32) for name, t in tensors.items()}
    arrays.update(constants or {})
    arrays.update(expected=result.detach().numpy(), grad_out=grad_out.numpy().astype(np.float32))
    arrays.update({"grad_" + name: t.grad.numpy() for name, t in tensors.items()})
    arrays.update(after() if after else {})
    shapes = " ".join("x".join(map(str, np.shape(v))) or "scalar" for v in inputs.values())
    settings = "".join(f" {key}={value}" for key, value in params.items())
    store.add(f"{op} {shapes}{settings}{detail and ' ' + detail}", arrays, op=op, **params)


def convolutions():
    def case(x, out, kernel, stride=(1, 1), padding=(0, 0), dilation=(1, 1), groups=1, bias=True):
        def call(x, weight, *bias):
            return nhwc(F.conv2d(nchw(x), nchw(weight), bias[0] if bias else None, stride, padding, dilation, groups))
        inputs = {"x": normal(*x), "weight": normal(out, *kernel, x[3] // groups, scale=0.5)}
        if bias:
            inputs["zbias"] = normal(out)
        add("conv2d", call, inputs, stride=list(stride), padding=list(padding), dilation=list(dilation), groups=groups)

    case((1, 1, 1, 1), 1, (1, 1))
    case((1, 5, 5, 1), 1, (3, 3), bias=False)
    case((2, 7, 5, 3), 4, (3, 3), padding=(1, 1))
    case((2, 7, 5, 3), 4, (3, 3), padding=(1, 1), bias=False)
    case((2, 8, 8, 4), 8, (1, 1))
    case((1, 9, 7, 5), 3, (1, 1), stride=(2, 2))
    case((2, 9, 8, 3), 5, (3, 3), stride=(2, 2), padding=(1, 1))
    case((1, 15, 13, 3), 6, (7, 7), stride=(2, 2), padding=(3, 3), bias=False)
    case((1, 11, 10, 2), 3, (5, 3), stride=(3, 2), padding=(2, 1))
    case((1, 10, 11, 2), 3, (2, 4), stride=(1, 3), padding=(1, 2))
    case((1, 12, 12, 3), 4, (3, 3), padding=(2, 2), dilation=(2, 2))
    case((1, 13, 11, 2), 3, (3, 2), stride=(2, 1), padding=(3, 1), dilation=(3, 2))
    case((1, 11, 11, 3), 2, (3, 3), stride=(2, 2), padding=(0, 0), dilation=(2, 1))
    case((2, 6, 6, 4), 6, (3, 3), padding=(1, 1), groups=2)
    case((1, 8, 7, 6), 9, (3, 3), stride=(2, 2), padding=(1, 1), groups=3)
    case((2, 7, 7, 5), 5, (3, 3), padding=(1, 1), groups=5)
    case((1, 9, 9, 4), 8, (3, 3), stride=(2, 2), padding=(1, 1), groups=4, bias=False)
    case((1, 6, 6, 4), 4, (1, 1), groups=2)
    case((1, 2, 2, 3), 4, (5, 5), padding=(2, 2))
    case((1, 1, 3, 2), 3, (3, 3), padding=(1, 1))
    case((1, 1, 1, 2), 2, (3, 3), padding=(1, 1))
    case((1, 3, 3, 2), 2, (3, 3), padding=(3, 4))
    case((1, 5, 6, 2), 2, (3, 3), stride=(5, 4), padding=(1, 1))
    case((1, 4, 4, 2), 2, (1, 1), stride=(3, 3), padding=(1, 1))
    case((1, 3, 9, 9), 19, (3, 3), padding=(1, 1))
    case((3, 4, 4, 16), 16, (3, 3), padding=(1, 1), bias=False)
    case((1, 16, 16, 16), 16, (3, 3), padding=(1, 1), bias=False)
    case((1, 9, 10, 16), 17, (3, 3))
    case((1, 13, 6, 20), 16, (3, 3), padding=(2, 0))
    case((1, 7, 7, 24), 16, (3, 3), padding=(1, 1))
    case((1, 5, 5, 24), 40, (1, 1), stride=(2, 2), bias=False)
    case((1, 1, 40, 3), 2, (1, 9), padding=(0, 4))
    case((1, 40, 1, 3), 2, (9, 1), padding=(4, 0))


def batch_norms():
    def case(shape, training, relu=False, residual=False, momentum=0.1, epsilon=1e-5, offset=0.0, spread=1.0):
        channels = shape[-1]
        mean, variance = torch.tensor(normal(channels)), torch.tensor(in_f32(rng.uniform(0.5, 2, channels)))
        constants = {"running_mean": mean.numpy().copy(), "running_variance": variance.numpy().copy()}

        def call(x, weight, zbias, *zresidual):
            flat = F.batch_norm(x.reshape(-1, channels), mean, variance, weight, zbias, training, momentum, epsilon)
            y = flat.reshape(shape)
            y = y + zresidual[0] if zresidual else y
            return torch.relu(y) if relu else y
        inputs = {"x": in_f32(offset + normal(*shape, scale=spread)), "weight": in_f32(rng.uniform(0.5, 1.5, channels)),
                  "zbias": normal(channels)}
        if residual:
            inputs["zresidual"] = normal(*shape)
        add("batch_norm", call, inputs, constants, lambda: {"moved_mean": mean.numpy(), "moved_variance": variance.numpy()},
            training=training, relu=relu, residual=residual, momentum=momentum, epsilon=epsilon,
            detail=f"offset={offset} spread={spread}")

    for training in (True, False):
        for relu, residual in ((False, False), (True, False), (False, True), (True, True)):
            case((2, 3, 4, 5), training, relu, residual)
            case((3, 5, 3, 16), training, relu, residual)
        case((7, 3), training, momentum=0.3)
        case((1, 4, 4, 1), training, epsilon=1e-3)
        case((2, 1, 1, 33), training, relu=True)
        case((300, 3), training, relu=True, residual=True, momentum=1.0)
        case((2, 9, 9, 7), training, offset=30.0, spread=0.5)
    case((600, 2), True, offset=100.0)
    case((40, 2), True, spread=1e-2)
    case((5, 65), True, momentum=0.0)


def pools():
    def window(op, function, x, kernel, stride, padding=(0, 0), dilation=(1, 1), values=None):
        def call(t):
            more = {"dilation": dilation} if op == "max_pool2d" else {}
            return nhwc(function(nchw(t), kernel, stride, padding, **more))
        add(op, call, {"x": normal(*x) if values is None else values}, kernel=list(kernel), stride=list(stride),
            padding=list(padding), dilation=list(dilation), detail="" if values is None else "ties")

    for op, function in (("max_pool2d", F.max_pool2d), ("avg_pool2d", F.avg_pool2d)):
        for x in ((1, 4, 4, 1), (2, 7, 9, 3), (1, 5, 6, 17)):
            window(op, function, x, (2, 2), (2, 2))
            window(op, function, x, (3, 3), (2, 2), (1, 1))
            window(op, function, x, (3, 2), (1, 1), (1, 0))
            window(op, function, x, (1, 1), (1, 1))
            window(op, function, x, (3, 3), (1, 1), (1, 1))
            window(op, function, x, (2, 3), (3, 1), (0, 1))
        window(op, function, (1, 5, 6, 65), (3, 3), (2, 2), (1, 1))
        window(op, function, (2, 1, 1, 4), (1, 1), (1, 1))
        window(op, function, (1, 3, 3, 2), (3, 3), (1, 1))
        window(op, function, (1, 2, 2, 2), (4, 4), (1, 1), (2, 2))
        window(op, function, (1, 10, 5, 2), (5, 4), (4, 3), (2, 2))
        window(op, function, (2, 5, 11, 3), (1, 5), (1, 2), (0, 2))
        window(op, function, (1, 9, 9, 2), (7, 7), (7, 7), (3, 3))
        window(op, function, (1, 6, 7, 5), (2, 2), (3, 3))
    ties = lambda *shape: np.asarray(rng.integers(0, 3, shape), np.float64)
    window("max_pool2d", F.max_pool2d, (1, 8, 8, 3), (3, 3), (2, 2), (1, 1), values=ties(1, 8, 8, 3))
    window("max_pool2d", F.max_pool2d, (2, 5, 5, 2), (3, 3), (1, 1), (1, 1), values=ties(2, 5, 5, 2))
    window("max_pool2d", F.max_pool2d, (1, 9, 9, 3), (3, 3), (1, 1), (1, 1), (2, 2))
    window("max_pool2d", F.max_pool2d, (1, 11, 8, 2), (3, 2), (2, 1), (1, 1), (2, 3))

    sizes = [(1, 1, 1, 1), (2, 7, 7, 5), (1, 5, 8, 3), (1, 13, 4, 9), (1, 3, 4, 65), (3, 2, 3, 2)]
    for x in sizes:
        for out in ((1, 1), (2, 3), (5, 4), (7, 7), (3, 1)):
            add("adaptive_avg_pool2d", lambda t: nhwc(F.adaptive_avg_pool2d(nchw(t), out)), {"x": normal(*x)}, out=list(out))


def cross_entropies():
    number = 0
    for rows, classes in ((1, 1), (1, 2), (4, 10), (7, 3), (16, 2), (3, 33), (5, 257)):
        for smoothing in (0.0, 0.1, 0.5, 1.0):
            labels = np.asarray(rng.integers(0, classes, rows), np.int64)
            number += 1
            add("cross_entropy", lambda x: F.cross_entropy(x, torch.tensor(labels), label_smoothing=smoothing),
                {"logits": normal(rows, classes, scale=3)}, {"labels": labels}, smoothing=smoothing, detail=f"set {number}")


for group in (convolutions, batch_norms, pools, cross_entropies):
    group()
store.write()
