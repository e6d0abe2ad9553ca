// The extension tandem._tandem: Classifier for NumPy arrays, PIL images and files; tensors.
#include <fmt/format.h>
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <optional>
#include <string>
#include <vector>

#include "python/tensor.h"
#include "tandem/core/check.h"
#include "tandem/image/decode.h"
#include "tandem/train/classifier.h"

namespace py = pybind11;

namespace tandem {
namespace {

// An image, and what keeps its pixels alive.
struct HeldImage {
  py::object owner;
  Image decoded;
  std::optional<ImageView> view;
};

std::string describe(const py::array& array) {
  return fmt::format("{} of shape {}", py::str(array.dtype()).cast<std::string>(),
                     py::str(array.attr("shape")).cast<std::string>());
}

[[noreturn]] void refuse(const py::array& array) {
  throw py::type_error(
      "expected an array of uint8 of shape (height, width, 3), (height, width) or (height, width, 4), got " +
      describe(array));
}

// Reads the pixels in place if those of a row are contiguous, else a copy.
HeldImage hold_array(py::array array) {
  if (!array.dtype().is(py::dtype::of<std::uint8_t>()) && !array.dtype().equal(py::dtype::of<std::uint8_t>()))
    refuse(array);
  const py::ssize_t rank = array.ndim();
  if (rank != 2 && !(rank == 3 && (array.shape(2) == 1 || array.shape(2) == 3 || array.shape(2) == 4)))
    refuse(array);
  const py::ssize_t channels = rank == 2 ? 1 : array.shape(2);
  const py::ssize_t row = array.shape(1) * channels;
  const bool contiguous = (rank == 2 || channels == 1 || array.strides(2) == 1) &&
                          (array.shape(1) <= 1 || array.strides(1) == channels) && array.strides(0) >= row;
  if (!contiguous) array = py::array_t<std::uint8_t, py::array::c_style | py::array::forcecast>(array);
  HeldImage held{.owner = array, .decoded = {}, .view = {}};
  held.view.emplace(static_cast<const std::uint8_t*>(array.data()), array.shape(0), array.shape(1),
                    static_cast<int>(channels), array.shape(0) <= 1 || !contiguous ? row : array.strides(0));
  return held;
}

// A PIL image as RGB or gray pixels. Transparency is blended over white, as when a file is decoded.
py::object pil_pixels(const py::object& image) {
  const auto mode = image.attr("mode").cast<std::string>();
  if (mode == "RGB" || mode == "L") return image;
  if (mode == "RGBA" || mode == "LA" || mode == "PA" || image.attr("info").contains("transparency")) {
    const py::object rgba = image.attr("convert")("RGBA");
    const py::object white = py::module_::import("PIL.Image").attr("new")("RGBA", rgba.attr("size"), "white");
    white.attr("alpha_composite")(rgba);
    return white.attr("convert")("RGB");
  }
  return image.attr("convert")("RGB");
}

HeldImage hold(const py::object& image) {
  if (py::isinstance<py::array>(image)) return hold_array(image);
  if (py::isinstance<py::str>(image) || py::hasattr(image, "__fspath__")) {
    const auto path = py::module_::import("os").attr("fspath")(image).cast<std::string>();
    HeldImage held;
    const py::gil_scoped_release release;
    held.decoded = load_image(path);
    return held;
  }
  const bool is_pil = py::hasattr(image, "mode") && py::hasattr(image, "convert");
  if (!is_pil && !py::hasattr(image, "__array_interface__") && !py::hasattr(image, "__array__"))
    throw py::type_error("expected an array of uint8, a PIL image or a path, got " +
                         py::str(py::type::of(image)).cast<std::string>());
  return hold_array(py::module_::import("numpy").attr("asarray")(is_pil ? pil_pixels(image) : image));
}

bool is_batch(const py::object& images) {
  return py::isinstance<py::list>(images) || py::isinstance<py::tuple>(images) ||
         (py::isinstance<py::array>(images) && py::reinterpret_borrow<py::array>(images).ndim() == 4);
}

py::object classify(const Classifier& model, const py::object& images) {
  const bool batch = is_batch(images);
  std::vector<HeldImage> held;
  if (batch)
    for (const py::handle image : images) held.push_back(hold(py::reinterpret_borrow<py::object>(image)));
  else
    held.push_back(hold(images));
  std::vector<ImageView> views;
  views.reserve(held.size());
  for (const HeldImage& each : held) views.push_back(each.view ? *each.view : ImageView(each.decoded));
  std::vector<Prediction> answers(views.size());
  {
    const py::gil_scoped_release release;
    model.classify(views, answers);
  }
  return batch ? py::cast(std::move(answers)) : py::cast(std::move(answers.front()));
}

py::array_t<float> probabilities_of(const Prediction& answer) {
  return py::array_t<float>(static_cast<py::ssize_t>(answer.probabilities.size()),
                            answer.probabilities.data());
}

Classifier open(const py::object& file, const std::string& device, const std::string& precision) {
  const auto path = py::module_::import("os").attr("fspath")(file).cast<std::string>();
  const py::gil_scoped_release release;
  return Classifier(path, {.device = parse_device(device), .precision = parse_precision(precision)});
}

}  // namespace
}  // namespace tandem

PYBIND11_MODULE(_tandem, m) {
  using namespace tandem;
  py::register_exception<Error>(m, "Error", PyExc_RuntimeError);
  add_tensor(m);
  py::class_<Prediction>(m, "Prediction", "The prediction for one image.")
      .def_readonly("index", &Prediction::chosen, "The index of the predicted class.")
      .def_readonly("class_name", &Prediction::class_name, "Its name.")
      .def_readonly("probability", &Prediction::probability, "Its probability.")
      .def_property_readonly("probabilities", &probabilities_of, "One float32 per class.")
      .def("__repr__", [](const Prediction& answer) {
        return fmt::format("Prediction({}, {:.4f})", py::repr(py::str(answer.class_name)).cast<std::string>(),
                           answer.probability);
      });
  py::class_<Classifier>(
      m, "Classifier",
      "A model that `tandem train` saved. Gives the bits of `tandem predict`; all threads may share one.")
      .def(py::init(&open), py::arg("file"), py::kw_only(), py::arg("device") = "cpu",
           py::arg("precision") = "fp32",
           "Loads a model file or the best model of a run folder. device: cpu, cuda, cuda:1. precision: "
           "fp32, tf32, bf16.")
      .def("__call__", &classify, py::arg("image"),
           "The Prediction for an image, or a list of them for a list of images or an array of four "
           "axes.\n\nAn image is "
           "an array of uint8 of shape (height, width, 3), (height, width) or (height, width, 4), whose "
           "alpha is dropped; "
           "a PIL image; or the path of a file. Arrays whose rows are contiguous are read in place.")
      .def_property_readonly(
          "classes", [](const Classifier& model) { return model.classes(); }, "Their names.")
      .def_property_readonly(
          "size",
          [](const Classifier& model) { return py::make_tuple(model.info().height, model.info().width); },
          "Height and width of the network's input.")
      .def("__repr__", [](const Classifier& model) {
        return fmt::format("Classifier({}, {} classes)", model.info().architecture.to_string(),
                           model.classes().size());
      });
}
