"""Stored results of MobileNetV3 and EfficientNet-B0 from torchvision in f64, for weights and images made by torch_resnet.py's
formulas, without dropout and stochastic depth. Cases and arrays are those of make_resnet.py.

The bias of a projection's batch norm moves every pixel alike, and the batch norm after the next 1x1 convolution takes that back.
Its gradient is 0, so these biases are listed by name (params["zero_names"]) and not stored.

    python3 tests/golden/make_mobile.py
"""
import sys

import numpy as np
import torch
import torchvision
from torch import nn
from torchvision.ops.misc import Conv2dNormActivation

from store import Store
from torch_resnet import hashed_state, images, nudge_bias, one_step, summaries

CLASSES = 10
PARAMETERS = {"mobilenet_v3_small": 2542856, "mobilenet_v3_large": 5483032, "efficientnet_b0": 5288548}
KINKS = {nn.ReLU: (0.0,), nn.Hardswish: (-3.0, 3.0), nn.Hardsigmoid: (-3.0, 3.0)}
store = Store("mobile")


def make(name, classes):
    model = getattr(torchvision.models, name)(num_classes=classes)
    for module in model.modules():
        if isinstance(module, (nn.Dropout, torchvision.ops.StochasticDepth)):
            module.p = 0.0
        if hasattr(module, "inplace"):
            module.inplace = False
    return model


def add_names(name):
    model = make(name, 1000)
    assert sum(p.numel() for p in model.parameters()) == PARAMETERS[name]  # what torchvision's documentation says
    shapes = {key: list(tensor.shape) for key, tensor in model.state_dict().items()}
    store.add(f"names of {name}", {}, op="names", model=name, names=list(shapes), shapes=list(shapes.values()))


def distance(values, kinks):
    return min((values - kink).abs().min().item() for kink in kinks)


def nudge_biases(model, x, margin=1e-4):
    """As in make_resnet.py: moves biases of batch norms until no argument of an activation is near one of its kinks. Arguments
    that no batch norm computes are only checked."""
    norm_of = {id(m[2]): m[1] for m in model.modules() if isinstance(m, Conv2dNormActivation) and len(m) > 2}
    steps = {}

    def before(activation, inputs):
        pre, kinks = inputs[0], KINKS[type(activation)]
        limit = margin * pre.pow(2).mean().sqrt().item()
        norm = norm_of.get(id(activation))
        if norm is None:
            assert distance(pre, kinks) >= limit / 10, f"an argument of {activation} is near a kink: take another salt"
            return None
        moved, steps[id(norm)] = nudge_bias(norm, pre, lambda values: distance(values, kinks) >= limit)
        return (moved,)

    hooks = [m.register_forward_pre_hook(before) for m in model.modules() if type(m) in KINKS]
    saved = {name: buffer.clone() for name, buffer in model.named_buffers()}
    with torch.no_grad():
        model.train()(x)
    for name, buffer in model.named_buffers():
        buffer.copy_(saved[name])
    for hook in hooks:
        hook.remove()
    return np.concatenate([steps.get(id(m), np.zeros(m.num_features, np.uint8))
                           for m in model.modules() if isinstance(m, nn.BatchNorm2d)])


def add_step(name, salt, shape):
    model = make(name, CLASSES)
    model.load_state_dict(hashed_state(model, salt))
    model, x = model.double(), images(salt + "x", shape).double()
    nudges = nudge_biases(model, x)
    with torch.no_grad():
        evaluated = model.eval()(x)
    single = make(name, CLASSES)
    single.load_state_dict({k: v.float() if v.is_floating_point() else v for k, v in model.state_dict().items()})
    logits, loss = one_step(model, x, CLASSES)
    one_step(single, x.float(), CLASSES)
    grads = {key: p.grad for key, p in model.named_parameters()}
    max_norm = max(g.norm() for g in grads.values())
    zeros = [key for key, g in grads.items() if g.norm() < 1e-12 * max_norm]
    assert all(key.endswith(".1.bias") for key in zeros)
    grads = {key: g for key, g in grads.items() if key not in zeros}
    statistics = {key: b for key, b in model.named_buffers() if "tracked" not in key}
    errors = [((p.grad.double() - grads[n]).abs().max() / grads[n].abs().max()).item() for n, p in single.named_parameters() if n in grads]
    arrays = {"nudges": nudges, "evaluated": evaluated.numpy(), "logits": logits.detach().numpy(), "loss": loss.detach().numpy()}
    arrays.update(summaries("grad", grads))
    arrays.update(summaries("state", statistics))
    store.add(f"step of {name} {'x'.join(map(str, shape))}", arrays, op="step", model=name, salt=salt, shape=list(shape),
              classes=CLASSES, zero_names=zeros, grad_names=list(grads), state_names=list(statistics))
    print(f"{name} {shape}: PyTorch's gradients in f32 differ by {max(errors):.1e}, {len(zeros)} are 0, {np.count_nonzero(nudges)} biases moved, "
          f"logits {evaluated.abs().max():.2f} in evaluation, {logits.abs().max():.2f} in training", file=sys.stderr)


if __name__ == "__main__":
    for model_name in PARAMETERS:
        add_names(model_name)
        add_step(model_name, "a.", (6 if model_name == "efficientnet_b0" else 3, 64, 64, 3))
    add_step("mobilenet_v3_small", "b.", (2, 71, 67, 3))
    store.write()
