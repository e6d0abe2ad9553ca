"""PyTorch on the CPU: torch.maximum, X @ X.T, conv2d."""
import warnings

import torch

warnings.filterwarnings("ignore")
prepare = torch.from_numpy


def tandem_max(a, b, out):
    torch.maximum(a, b, out=out)


def xxt(x, out):
    torch.matmul(x, x.T, out=out)


def correlation(image, kernel, out):
    kh, kw = kernel.shape
    with torch.no_grad():
        result = torch.nn.functional.conv2d(image[None, None], kernel[None, None], padding=(kh // 2, kw // 2))
        out.copy_(result[0, 0, :image.shape[0], :image.shape[1]])
