"""OpenCV: cv2.max and cv2.filter2D with zeros outside."""
import cv2

cv2.setNumThreads(-1)


def max(a, b, out):
    if a.dtype.itemsize == 8 and a.dtype.kind == "i":
        return NotImplemented
    cv2.max(a, b, dst=out)


def correlation(image, kernel, out):
    if kernel.shape[0] % 2 == 0 or kernel.shape[1] % 2 == 0:
        return NotImplemented
    cv2.filter2D(image, -1, kernel, dst=out, borderType=cv2.BORDER_CONSTANT)
