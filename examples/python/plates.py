"""Trains a classifier of rendered plates, classifies others and plots both. Run it, or paste its parts into the cells of a notebook."""
# %% Data: a folder of pictures, one folder per class
import pathlib

import tandem

tandem.program("plates", "pictures", "--train", "20", "--test", "8", "--size", "160")

# %% Training, with the options of `tandem train`; these weights ship with Tandem
run = tandem.train("pictures/train", pretrained="scenes", out="plates_run")

# %% Predictions, of files here; arrays of uint8 and PIL images work too
model = tandem.Classifier(run.model)
files = sorted(pathlib.Path("pictures/test").rglob("*.png"))
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
    figure, axes = plt.subplots(figsize=(6, 3))
    axes.barh([f"{file.stem}: {answer.class_name}" for file, answer in zip(files, answers)], [answer.probability for answer in answers])
    axes.set(xlabel="probability", xlim=(0, 1))
    figure.tight_layout()
    figure.savefig("plates.png")
    print("plates.png")
