"""Tandem: trains image classifiers, and classifies images with them.

>>> run = tandem.train("photos", model="resnet18", freeze=True)     # the options of `tandem train`
>>> model = tandem.Classifier(run.model)
>>> answer = model("cat.jpg")                                       # or an array of uint8 (height, width, 3)
>>> answer.class_name, answer.probability
"""
from ._tandem import Classifier, Error, Prediction, Tensor, from_dlpack, from_numpy
from ._train import Run, program, train
from ._version import __version__

__all__ = ["Classifier", "Error", "Prediction", "Run", "Tensor", "from_dlpack", "from_numpy", "program", "train", "__version__"]
