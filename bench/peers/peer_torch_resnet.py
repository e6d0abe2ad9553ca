"""PyTorch training ResNet-18, ResNet-50 or a mobile network of torchvision (SGD with momentum), training only its last layer with a frozen backbone in train mode, and inference, on
random 224×224 images on the device, channels-last. tf32 lets products and convolutions use TF32, bf16 is autocast;
with --compile, bf16 is also timed with torch.compile. On the CPU it runs with oneDNN (channels-last) or without, whichever is faster; bf16
with oneDNN, and compiled inference with frozen weights, which oneDNN packs once."""
import contextlib
import sys

import measure
import torch_photos


class Run:
    """call() is one step or one inference on a batch."""

    def __init__(self, work, device, channels_last, compiled):
        import torch
        torch.manual_seed(1)
        layout = torch.channels_last if channels_last else torch.contiguous_format
        self.work, self.device = work, device
        self.model = torch_photos.network(getattr(work, "model", "resnet18")).to(device).to(memory_format=layout)
        self.images = torch.randn(work.batch, 3, 224, 224, device=device).to(memory_format=layout)
        self.labels = torch.randint(0, 1000, (work.batch,), device=device)
        if work.what == "train-head":
            torch_photos.freeze(self.model)
        self.model.train(work.what != "infer")
        self.optimizer = torch.optim.SGD([p for p in self.model.parameters() if p.requires_grad], 1e-4, momentum=0.9, foreach=True)
        self.forward = torch.compile(self.model) if compiled else self.model
        if compiled and device == "cpu":
            import torch._inductor.config
            torch._inductor.config.freezing = work.what == "infer"

    def autocast(self):
        import torch
        return torch.autocast(self.device, torch.bfloat16) if self.work.precision == "bf16" else contextlib.nullcontext()

    def call(self):
        import torch
        if self.work.what == "infer":
            with torch.inference_mode(), self.autocast():
                return self.forward(self.images)
        self.optimizer.zero_grad(set_to_none=True)
        with self.autocast():
            loss = torch.nn.functional.cross_entropy(self.forward(self.images), self.labels)
        loss.backward()
        self.optimizer.step()
        return loss

    def time(self, budget_s):
        import torch
        if not bool(torch.isfinite(self.call().float()).all()):
            raise RuntimeError(f"{self.work.case} gives non-finite values")
        if self.device == "cpu":
            return measure.of_all_samples(measure.time_cpu(self.call, budget_s), self.work.batch)
        calls = 5

        def several():
            for _ in range(calls):
                self.call()
            torch.cuda.synchronize()
        several()
        return measure.of_all_samples(measure.time_cpu(several, budget_s, calls), self.work.batch)


def run(work, device, budget_s):
    import torch
    torch.backends.cudnn.benchmark = True
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = work.precision == "tf32"
    if work.precision == "int8":
        yield "PyTorch", "its networks are not quantized here"
        return
    if device == "cpu":
        enabled = work.precision == "bf16" or torch_photos.onednn_is_faster(getattr(work, "model", "resnet18"))
        with torch.backends.mkldnn.flags(enabled=enabled):
            yield "PyTorch", Run(work, device, enabled, False).time(budget_s)
            if "--compile" in sys.argv and work.precision == "bf16":
                yield "PyTorch compiled", Run(work, device, enabled, True).time(budget_s)
        return
    yield "PyTorch", Run(work, device, True, False).time(budget_s)
    if "--compile" in sys.argv and work.precision == "bf16":
        yield "PyTorch compiled", Run(work, device, True, True).time(budget_s)


measure.run("PyTorch", run)
