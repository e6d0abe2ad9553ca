"""Class activation maps from PyTorch's autograd in f64, for weights and images made by torch_resnet.py's formulas: Grad-CAM
(Selvaraju et al. 2017) and LayerCAM (Jiang et al. 2021) of the output of the last convolutional block, named here by hand, and
of the logit of params["targets"], neither enlarged nor scaled.

    python3 tests/golden/make_explain.py
"""
import torch
import torchvision

from store import Store
from torch_resnet import Cnn, ResNet, hashed_state, images

CLASSES = 10
store = Store("explain")


def activation_maps(model, layer, x, targets):
    """-> Grad-CAM and LayerCAM, each (n, height, width)"""
    kept = []
    hook = layer.register_forward_hook(lambda module, inputs, output: kept.append(output))
    logits = model(x)
    hook.remove()
    activation = kept[-1]  # the last call of a layer that is called twice
    gradient, = torch.autograd.grad(logits[torch.arange(len(x)), torch.tensor(targets)].sum(), activation)
    weights = gradient.mean((2, 3), keepdim=True)
    grad_cam = torch.relu((weights * activation).sum(1))
    layer_cam = torch.relu((torch.relu(gradient) * activation).sum(1))
    return grad_cam.detach().numpy(), layer_cam.detach().numpy()


def add(name, model, layer, shape, targets=None, salt="a."):
    """Without targets, of the predicted classes."""
    model.load_state_dict(hashed_state(model, salt))
    for module in model.modules():
        if hasattr(module, "inplace"):
            module.inplace = False
    model, x = model.double().eval(), images(salt + "x", shape).double()
    targets = targets or model(x).argmax(1).tolist()
    grad_cam, layer_cam = activation_maps(model, layer, x, targets)
    assert grad_cam.max() > 0 and layer_cam.max() > 0, "take another target"
    store.add(f"{name} {'x'.join(map(str, shape))}", {"grad_cam": grad_cam, "layer_cam": layer_cam}, model=name, salt=salt,
              shape=list(shape), classes=CLASSES, targets=targets)


if __name__ == "__main__":
    resnet = ResNet(18, CLASSES)
    add("resnet18", resnet, resnet.layer4, (3, 128, 96, 3), [0, 3, 9])
    resnet = ResNet(50, CLASSES)
    add("resnet50", resnet, resnet.layer4, (1, 96, 128, 3))
    cnn = Cnn(channels=3, width=32, classes=CLASSES)
    add("cnn", cnn, cnn.relu, (2, 19, 33, 3))
    for mobile in ("mobilenet_v3_small", "efficientnet_b0"):
        network = getattr(torchvision.models, mobile)(num_classes=CLASSES)
        add(mobile, network, network.features, (2, 96, 96, 3))
    store.write()
