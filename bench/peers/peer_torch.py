"""PyTorch on the CPU or the GPU: torch.maximum, X @ X.T (fp32, or with TF32 allowed), conv2d. On the GPU also "copy", a
device-to-device copy that moves the same bytes as the case: the limit for memory-bound work (1.5 arrays for maximum, which
reads two and writes one; the image for correlation)."""
import measure


def make_call(work, given):
    """given: tensors of one set -> a call that computes and returns the result."""
    import torch
    if work.study == "max":
        out = torch.empty_like(given[0])
        return lambda: torch.maximum(given[0], given[1], out=out)
    if work.study == "xxt":
        out = torch.empty((work.rows, work.rows), dtype=given[0].dtype, device=given[0].device)
        return lambda: torch.matmul(given[0], given[0].T, out=out)
    image, kernel = given[0][None, None], given[1][None, None]
    (kh, kw), h, w = work.kernel, work.rows, work.columns
    return lambda: torch.nn.functional.conv2d(image, kernel, padding=(kh // 2, kw // 2))[0, 0, :h, :w]


def make_copy(work, like):
    import torch
    source = torch.ones(int(like.numel() * {"max": 1.5, "correlation": 1}[work.study]), dtype=like.dtype, device=like.device)
    target = torch.empty_like(source)
    return lambda: target.copy_(source)


def run(work, device, budget_s):
    import torch
    torch.backends.cuda.matmul.allow_tf32 = work.dtype == "tf32"
    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark = True  # let cuDNN pick its fastest convolution
    given = measure.inputs(work)
    with torch.no_grad():
        if device == "cpu":
            call = make_call(work, [torch.from_numpy(array) for array in given])
            measure.check_corner(work, given, call().numpy())
            yield "PyTorch", measure.time_cpu(call, budget_s)
            return

        sets = [[torch.from_numpy(array).to("cuda") for array in given] for _ in range(measure.SETS)]
        calls = [make_call(work, one) for one in sets]
        measure.check_corner(work, given, calls[0]()[:64, :64].cpu().numpy())
        yield "PyTorch", measure.time_torch(calls, budget_s)
        if work.study != "xxt":
            copies = [make_copy(work, one[0]) for one in sets]
            yield "copy", measure.time_torch(copies, budget_s)


measure.run("PyTorch", run)
