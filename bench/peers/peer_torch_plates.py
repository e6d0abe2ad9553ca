"""Transfer learning as in PyTorch's tutorial: ResNet-18, frozen except for a new last layer, Adam, StepLR, loaders with 8 workers
over the folders train and val of --plates=FOLDER, a validation phase in every epoch. After one warm-up epoch, a few epochs are
timed and scaled to the number of the case."""
import os
import sys
import time

import measure
import torch_photos

TIMED_EPOCHS = {"cpu": 1, "cuda": 3}


def loader_of(folder, transform, shuffle):
    import torch
    classes = sorted(os.listdir(folder))
    found = [(os.path.join(folder, name, file), label) for label, name in enumerate(classes)
             for file in sorted(os.listdir(os.path.join(folder, name)))]
    files, labels = zip(*found)
    return torch.utils.data.DataLoader(torch_photos.Photos(files, labels, transform), 8, shuffle=shuffle, num_workers=8)


def run(work, device, budget_s):
    import torch
    folder = next((argument.split("=", 1)[1] for argument in sys.argv if argument.startswith("--plates=")), None)
    if not folder:
        yield "PyTorch", "there are no plates"
        return
    if device == "cpu" and not torch_photos.onednn_is_faster():
        torch.backends.mkldnn.set_flags(False)
    torch.manual_seed(1)
    loaders = {"train": loader_of(os.path.join(folder, "train"), torch_photos.training_transform(224), True),
               "val": loader_of(os.path.join(folder, "val"), torch_photos.evaluation_transform(224), False)}
    model = torch_photos.freeze(torch_photos.resnet18(2)).to(device)
    optimizer = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], 1e-3)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 7, 0.1)

    def phase(name):
        model.train(name == "train")
        for images, labels in loaders[name]:
            images, labels = images.to(device), labels.to(device)
            optimizer.zero_grad()
            with torch.set_grad_enabled(name == "train"):
                outputs = model(images)
                loss = torch.nn.functional.cross_entropy(outputs, labels)
                if name == "train":
                    loss.backward()
                    optimizer.step()
            loss.item(), (outputs.argmax(1) == labels).float().mean().item()

    def epoch():
        start = time.perf_counter()
        phase("train")
        phase("val")
        schedule.step()
        return (time.perf_counter() - start) * 1e3
    epoch()
    figures = measure.summary([epoch() for _ in range(TIMED_EPOCHS[device])])
    yield "PyTorch", {name: ms * work.epochs for name, ms in figures.items()}


measure.run("PyTorch", run)
