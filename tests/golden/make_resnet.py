"""Stored results of ResNet-18/34/50 from PyTorch in f64, for weights and images made by torch_resnet.py's formulas.

params["op"] is
  "names"    the names and shapes of torchvision's state dict
  "step"     logits in evaluation and in training mode, the loss, every parameter's gradient and the running statistics after
             one training step; "cnn step" the same of the small network
  "logits"   logits in evaluation mode
  "training" weights and running statistics after ten steps of an optimizer
A tensor is stored as its Euclidean norm and 64 elements: `grad_norms` (tensors) and `grad_samples` (tensors, 64), in the order
of params["grad_names"]; `state_...` the same.

Rounding decides the side of a ReLU whose input is nearly 0, and then a gradient of f32 need not be near one of f64. So the
biases of batch norm are moved, in steps of 1/128 (`nudges`, how many for each channel, in the order of parameters), until no
input of a ReLU is near 0 in that training step.

    python3 tests/golden/make_resnet.py
"""
import sys

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from store import Store
from torch_resnet import BLOCKS, Cnn, ResNet, hashed_state, images, labels, nudge_bias, one_step, summaries

CLASSES = 10
store = Store("resnet")


def torchvision_names(depth, classes):
    """By torchvision's rule, not by the model above: it is held against this."""
    block, counts = BLOCKS[depth]
    bottleneck = block.expansion == 4
    shapes = {}

    def conv(name, out, channels, kernel):
        shapes[name + ".weight"] = [out, channels, kernel, kernel]

    def norm(name, channels):
        for part in ("weight", "bias", "running_mean", "running_var"):
            shapes[f"{name}.{part}"] = [channels]
        shapes[name + ".num_batches_tracked"] = []

    conv("conv1", 64, 3, 7)
    norm("bn1", 64)
    channels = 64
    for stage, count in enumerate(counts, start=1):
        width = 64 * 2 ** (stage - 1)
        out = width * 4 if bottleneck else width
        for i in range(count):
            name = f"layer{stage}.{i}."
            plan = [(1, width), (3, width), (1, out)] if bottleneck else [(3, width), (3, width)]
            before = channels
            for number, (kernel, width_out) in enumerate(plan, start=1):
                conv(f"{name}conv{number}", width_out, before, kernel)
                norm(f"{name}bn{number}", width_out)
                before = width_out
            if i == 0 and (stage > 1 or bottleneck):
                conv(name + "downsample.0", out, channels, 1)
                norm(name + "downsample.1", out)
            channels = out
    shapes["fc.weight"], shapes["fc.bias"] = [classes, channels], [classes]
    return shapes


def add_names(depth, parameters):
    shapes = torchvision_names(depth, 1000)
    model = {name: list(tensor.shape) for name, tensor in ResNet(depth, 1000).state_dict().items()}
    assert shapes == model, "the model here is not torchvision's"
    trained = [s for n, s in shapes.items() if "running" not in n and "tracked" not in n]
    assert sum(int(np.prod(s)) for s in trained) == parameters  # what torchvision's documentation says
    store.add(f"names of resnet{depth}", {}, op="names", depth=depth, names=list(shapes), shapes=list(shapes.values()))


def nudge_biases(model, x, margin=1e-4):
    """Moves biases until |input of a ReLU| >= margin, relative to its root mean square; returns the steps by channel."""
    queue, steps = model.norms_before_relu(), {}

    def before_relu(_, inputs):
        norm, pre = queue.pop(0), inputs[0]
        limit = margin * pre.pow(2).mean().sqrt().item()
        moved, steps[id(norm)] = nudge_bias(norm, pre, lambda values: values.abs().min().item() >= limit)
        return (moved,)

    hooks = [module.register_forward_pre_hook(before_relu) for module in model.modules() if isinstance(module, nn.ReLU)]
    saved = {name: buffer.clone() for name, buffer in model.named_buffers()}
    with torch.no_grad():
        model.train()(x)
    for name, buffer in model.named_buffers():
        buffer.copy_(saved[name])
    for hook in hooks:
        hook.remove()
    assert not queue
    return np.concatenate([steps[id(m)] if id(m) in steps else np.zeros(m.num_features, np.uint8)
                           for m in model.modules() if isinstance(m, nn.BatchNorm2d)])


def statistics(model):
    return {name: b for name, b in model.named_buffers() if "tracked" not in name}


def make(model):
    """18, 34, 50: the ResNet; a dict: the small network of these options."""
    return Cnn(classes=CLASSES, **model) if isinstance(model, dict) else ResNet(model, CLASSES)


def start(kind, salt, shape, nudge=True):
    """A model in f64, its images, and the nudges of its biases."""
    model = make(kind)
    model.load_state_dict(hashed_state(model, salt))
    model, x = model.double(), images(salt + "x", shape).double()
    return model, x, nudge_biases(model, x) if nudge else None


def add_step(kind, salt, shape):
    model, x, nudges = start(kind, salt, shape)
    with torch.no_grad():
        evaluated = model.eval()(x)
    single = make(kind)
    single.load_state_dict({k: v.float() if v.is_floating_point() else v for k, v in model.state_dict().items()})
    logits, loss = one_step(model, x, CLASSES)
    one_step(single, x.float(), CLASSES)
    grads = {name: p.grad for name, p in model.named_parameters()}
    errors = [((p.grad.double() - grads[n]).abs().max() / grads[n].abs().max()).item() for n, p in single.named_parameters()]
    arrays = {"nudges": nudges, "evaluated": evaluated.numpy(), "logits": logits.detach().numpy(), "loss": loss.detach().numpy()}
    arrays.update(summaries("grad", grads))
    arrays.update(summaries("state", statistics(model)))
    name = f"resnet{kind}" if isinstance(kind, int) else "cnn"
    about = {"depth": kind} if isinstance(kind, int) else kind
    store.add(f"step of {name} {'x'.join(map(str, shape))}", arrays, op="step" if isinstance(kind, int) else "cnn step",
              salt=salt, shape=list(shape), classes=CLASSES, grad_names=list(grads), state_names=list(statistics(model)), **about)
    print(f"{name} {shape}: PyTorch's gradients in f32 differ by {max(errors):.1e}, {np.count_nonzero(nudges)} biases moved",
          file=sys.stderr)


def add_logits(depth, salt, shape):
    model, x, _ = start(depth, salt, shape, nudge=False)
    with torch.no_grad():
        evaluated = model.eval()(x)
    store.add(f"logits of resnet{depth}", {"evaluated": evaluated.numpy()}, op="logits", depth=depth, salt=salt,
              shape=list(shape), classes=CLASSES)


def train(model, x, optimizer, scheduler, steps_per_epoch, fixed):
    """Ten steps on the same images; the schedule moves once an epoch."""
    model.train()
    if fixed:
        for module in model.modules():
            if isinstance(module, nn.BatchNorm2d):
                module.eval()
    losses = []
    for step in range(10):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), labels(len(x), CLASSES))
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        if scheduler and (step + 1) % steps_per_epoch == 0:
            scheduler.step()
    return losses


def add_training(name, kind, lr, frozen=False, fixed=False, salt="a.", shape=(3, 64, 64, 3), per_epoch=2, step_size=2, gamma=0.1):
    """Training a whole network is badly conditioned. ReLUs change sides after the first step (a relative change of 1e-6 of the
    weights makes 1e-3 of SGD at a rate of 1e-3, in f64), and Adam's first step is the rate times the sign of the gradient,
    also where that is rounding alone (at a rate of 1e-3 PyTorch's f32 ends 7e-2 away from its f64). So the whole network is
    trained at a smaller rate, and the test holds each tensor as a whole, and to how far it went (`whole`)."""
    def run(dtype):
        model, x, nudges = start(18, salt, shape)
        model, x = model.to(dtype), x.to(dtype)
        if frozen:
            for key, p in model.named_parameters():
                p.requires_grad_(key.startswith("fc."))
        moving = [p for p in model.parameters() if p.requires_grad]
        optimizer = torch.optim.SGD(moving, lr=lr, momentum=0.9) if kind == "sgd" else torch.optim.Adam(moving, lr=lr)
        scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size, gamma)
        losses = train(model, x, optimizer, scheduler, per_epoch, fixed)
        state = dict(model.named_parameters())
        state.update(statistics(model))
        return losses, state, nudges

    losses, state, nudges = run(torch.float64)
    single_losses, single, _ = run(torch.float32)
    errors = {n: ((single[n].double() - state[n]).norm() / state[n].norm()).item() for n in state}
    greatest = max(((single[n].double() - state[n]).abs().max() / state[n].abs().max()).item() for n in state)
    arrays = {"nudges": nudges, "losses": np.array(losses), **summaries("state", state)}
    store.add(name, arrays, op="training", depth=18, salt=salt, shape=list(shape), classes=CLASSES, frozen=frozen, fixed=fixed,
              whole=not frozen, optimizer=kind, lr=lr, steps_per_epoch=per_epoch, step_size=step_size,
              gamma=gamma, state_names=list(state))
    worst = max(errors, key=errors.get)
    of_losses = max(abs(a / b - 1) for a, b in zip(single_losses, losses))
    print(f"{name}: losses {losses[0]:.4f} .. {losses[-1]:.4f}; PyTorch's f32 differs by {greatest:.1e}, as a whole by "
          f"{errors[worst]:.1e} ({worst}), losses by {of_losses:.1e}", file=sys.stderr)


if __name__ == "__main__":
    add_names(18, 11689512)
    add_names(34, 21797672)
    add_names(50, 25557032)
    add_step(18, "a.", (3, 64, 64, 3))
    add_step(18, "b.", (1, 71, 67, 3))
    add_step(34, "a.", (3, 64, 64, 3))
    add_step(34, "b.", (2, 71, 67, 3))
    add_step({"channels": 1, "width": 8}, "a.", (5, 28, 28, 1))
    add_step({"channels": 3, "width": 5}, "b.", (2, 19, 33, 3))
    add_logits(50, "a.", (2, 64, 64, 3))
    add_training("ten steps of SGD", "sgd", 1e-5, gamma=0.5)
    add_training("ten steps of Adam", "adam", 1e-5)
    add_training("ten steps of Adam on the last layer", "adam", 1e-3, frozen=True)
    add_training("ten steps of SGD on the last layer", "sgd", 1e-2, frozen=True)
    add_training("ten steps of SGD on the last layer, fixed statistics", "sgd", 1e-2, frozen=True, fixed=True)
    store.write()
