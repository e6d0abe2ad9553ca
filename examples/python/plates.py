"""Trains a classifier of rendered plates, classifies others and plots both. Run it, or paste its parts into the cells of a notebook."""
# %% Data: a folder of pictures, one folder per class
import pathlib

import tandem

tandem.program("plates", "plates", "--train", "24", "--test", "8", "--size", "96")

# %% Training, with the options of `tandem train`
run = tandem.train("plates", model="cnn", image_size=64, epochs=4, out="plates_run")

# %% Predictions, of files here; arrays of uint8 and PIL images work too
model = tandem.Classifier(run.model)
files = sorted(pathlib.Path("plates/test").rglob("*.png"))
answers = model(files)
for file, answer in zip(files, answers):
    print(f"{file}: {answer.class_name} ({answer.probability:.2f})")

# %% Plots
try:
    import matplotlib
    matplotlib.use("Agg")  # not in a notebook
    import matplotlib.pyplot as plt
except ImportError:
    print("matplotlib is not installed: no plot")
else:
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3))
    left.plot([epoch["epoch"] for epoch in run.epochs], [epoch["val_accuracy"] for epoch in run.epochs])
    left.set(xlabel="epoch", ylabel="validation accuracy")
    right.barh([f"{i}: {answer.class_name}" for i, answer in enumerate(answers)], [answer.probability for answer in answers])
    right.set(xlabel="probability")
    figure.tight_layout()
    figure.savefig("plates.png")
    print("plates.png")
