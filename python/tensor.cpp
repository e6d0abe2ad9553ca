#include "python/tensor.h"

#include <fmt/format.h>
#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "python/dlpack.h"
#include "tandem/core/check.h"
#include "tandem/device/stream.h"
#include "tandem/tensor/tensor.h"

namespace py = pybind11;

namespace tandem {
namespace {

// A tensor, and whether its memory may be written.
struct PythonTensor {
  Tensor tensor;
  bool writable = true;
};

struct TypeRow {
  DType dtype;
  const char* numpy;  // null: NumPy has none
  dlpack::DLDataType type;
};

constexpr TypeRow types[] = {
    {DType::f32, "float32", {dlpack::real, 32, 1}},  {DType::f64, "float64", {dlpack::real, 64, 1}},
    {DType::bf16, nullptr, {dlpack::bfloat, 16, 1}}, {DType::u8, "uint8", {dlpack::unsigned_integer, 8, 1}},
    {DType::i32, "int32", {dlpack::integer, 32, 1}}, {DType::i64, "int64", {dlpack::integer, 64, 1}}};

const TypeRow& row_of(DType dtype) {
  for (const TypeRow& row : types)
    if (row.dtype == dtype) return row;
  fail("[python] expected a known dtype, got {}", name_of(dtype));
}

// Keeps an object of Python alive. Its last handle may go away in any thread.
std::shared_ptr<void> keep(const py::object& object) {
  return {object.inc_ref().ptr(), [](PyObject* kept) {
            const py::gil_scoped_acquire acquire;
            Py_DECREF(kept);
          }};
}

Dims dims_of(const py::ssize_t* values, py::ssize_t rank, py::ssize_t unit) {
  if (rank > max_rank) throw py::value_error(fmt::format("expected at most {} axes, got {}", max_rank, rank));
  Dims dims = Dims::filled(static_cast<int>(rank), 0);
  for (int axis = 0; axis < rank; ++axis) {
    if (values[axis] < 0 || values[axis] % unit != 0)
      throw py::value_error(
          "expected strides of whole elements, none of them negative: numpy.ascontiguousarray() makes a "
          "copy");
    dims[axis] = values[axis] / unit;
  }
  return dims;
}

PythonTensor from_numpy(const py::array& array) {
  const py::dtype dtype = array.dtype();
  for (const TypeRow& row : types) {
    if (row.numpy == nullptr || !dtype.equal(py::dtype(row.numpy))) continue;
    if (reinterpret_cast<std::uintptr_t>(array.data()) % static_cast<std::uintptr_t>(array.itemsize()) != 0)
      throw py::value_error("expected aligned elements: numpy.require(array, requirements='A') makes a copy");
    const Shape shape(dims_of(array.shape(), array.ndim(), 1));
    const Dims strides = shape.numel() == 0 ? contiguous_strides(shape)
                                            : dims_of(array.strides(), array.ndim(), array.itemsize());
    return {
        Tensor::borrow(const_cast<void*>(array.data()), shape, strides, row.dtype, cpu_device, keep(array)),
        array.writeable()};
  }
  throw py::type_error(
      fmt::format("expected an array of float32, float64, uint8, int32 or int64 in the byte order of this "
                  "machine, got {}",
                  py::repr(dtype).cast<std::string>()));
}

py::array to_numpy(const PythonTensor& self) {
  const Tensor& tensor = self.tensor;
  if (tensor.device().is_cuda())
    throw py::type_error(fmt::format("expected a tensor on the CPU, got one on {}: to('cpu') copies it",
                                     tensor.device().to_string()));
  const TypeRow& row = row_of(tensor.dtype());
  if (row.numpy == nullptr) throw py::type_error("NumPy has no bf16");
  std::vector<py::ssize_t> shape(tensor.shape().begin(), tensor.shape().end()), strides;
  for (const std::int64_t stride : tensor.strides())
    strides.push_back(stride * static_cast<py::ssize_t>(size_of(tensor.dtype())));
  const py::capsule owner(new Tensor(tensor), [](void* kept) { delete static_cast<Tensor*>(kept); });
  py::array array(py::dtype(row.numpy), std::move(shape), std::move(strides), tensor.bytes(), owner);
  if (!self.writable) array.attr("setflags")(py::arg("write") = false);
  return array;
}

constexpr const char* unused_name = "dltensor";
constexpr const char* used_name = "used_dltensor";

struct Export {
  dlpack::DLManagedTensor managed;
  Tensor tensor;
  std::int64_t shape[max_rank], strides[max_rank];
};

py::tuple dlpack_device(const PythonTensor& self) {
  const Device device = self.tensor.device();
  return py::make_tuple(static_cast<int>(device.is_cuda() ? dlpack::cuda : dlpack::cpu),
                        static_cast<int>(device.index));
}

py::capsule to_dlpack(const PythonTensor& self, const py::object&) {
  const Tensor& tensor = self.tensor;
  if (!self.writable) {
    PyErr_SetString(PyExc_BufferError, "DLPack cannot say that a tensor is read-only: copy the array first");
    throw py::error_already_set();
  }
  if (tensor.device().is_cuda()) {  // whatever stream the consumer uses
    const py::gil_scoped_release release;
    current_stream(tensor.device()).synchronize();
  }
  auto out = std::make_unique<Export>();
  out->tensor = tensor;
  std::ranges::copy(tensor.shape(), out->shape);
  std::ranges::copy(tensor.strides(), out->strides);
  out->managed = {
      .tensor = {.data = tensor.bytes(),
                 .device = {tensor.device().is_cuda() ? dlpack::cuda : dlpack::cpu,
                            static_cast<std::int32_t>(tensor.device().index)},
                 .rank = tensor.rank(),
                 .dtype = row_of(tensor.dtype()).type,
                 .shape = out->shape,
                 .strides = out->strides,
                 .byte_offset = 0},
      .context = out.get(),
      .deleter = [](dlpack::DLManagedTensor* done) { delete static_cast<Export*>(done->context); }};
  PyObject* const capsule = PyCapsule_New(&out->managed, unused_name, [](PyObject* self_capsule) {
    if (!PyCapsule_IsValid(self_capsule, unused_name)) return;  // taken by a consumer, who frees it
    auto* const left = static_cast<dlpack::DLManagedTensor*>(PyCapsule_GetPointer(self_capsule, unused_name));
    left->deleter(left);
  });
  if (capsule == nullptr) throw py::error_already_set();
  static_cast<void>(out.release());  // the capsule owns it
  return py::reinterpret_steal<py::capsule>(capsule);
}

py::object call_dlpack(const py::object& source) {
  if (!py::hasattr(source, "__dlpack__"))
    throw py::type_error("expected an object with __dlpack__, got " +
                         py::str(py::type::of(source)).cast<std::string>());
  const py::tuple where = source.attr("__dlpack_device__")();
  if (where[0].cast<int>() != dlpack::cuda) return source.attr("__dlpack__")();
  const StreamView stream = current_stream(cuda_device(where[1].cast<int>()));
  return source.attr("__dlpack__")(py::arg("stream") = reinterpret_cast<std::uintptr_t>(stream.handle));
}

PythonTensor from_dlpack(const py::object& source) {
  const py::object capsule = call_dlpack(source);
  auto* const managed =
      static_cast<dlpack::DLManagedTensor*>(PyCapsule_GetPointer(capsule.ptr(), unused_name));
  if (managed == nullptr) throw py::error_already_set();
  const dlpack::DLTensor& given = managed->tensor;
  const TypeRow* known = nullptr;
  for (const TypeRow& row : types)
    if (row.type.code == given.dtype.code && row.type.bits == given.dtype.bits && given.dtype.lanes == 1)
      known = &row;
  if (known == nullptr)
    throw py::type_error(fmt::format(
        "expected float32, float64, bfloat16, uint8, int32 or int64, got DLPack's type ({}, {}, {})",
        given.dtype.code, given.dtype.bits, given.dtype.lanes));
  const bool on_host = given.device.type == dlpack::cpu || given.device.type == dlpack::cuda_host;
  if (!on_host && given.device.type != dlpack::cuda)
    throw py::value_error(fmt::format("expected a tensor on the CPU or a CUDA device, got DLPack's device {}",
                                      given.device.type));
  const std::vector<py::ssize_t> sizes(given.shape, given.shape + given.rank);
  const Shape shape(dims_of(sizes.data(), given.rank, 1));
  Dims strides = contiguous_strides(shape);
  if (given.strides != nullptr && shape.numel() > 0)
    strides =
        dims_of(std::vector<py::ssize_t>(given.strides, given.strides + given.rank).data(), given.rank, 1);
  const Device device = on_host ? cpu_device : cuda_device(given.device.index);
  require_available(device);
  // From here on the memory is ours to give back.
  if (PyCapsule_SetName(capsule.ptr(), used_name) != 0) throw py::error_already_set();
  const std::shared_ptr<void> owner(managed, [](dlpack::DLManagedTensor* done) {
    const py::gil_scoped_acquire acquire;
    if (done->deleter) done->deleter(done);
  });
  auto* const data = static_cast<std::byte*>(given.data) + (given.data ? given.byte_offset : 0);
  return {Tensor::borrow(data, shape, strides, known->dtype, device, owner)};
}

}  // namespace

void add_tensor(py::module_& module) {
  py::class_<PythonTensor>(module, "Tensor",
                           "A tensor on the CPU or a GPU. from_numpy() and from_dlpack() make one without a "
                           "copy; numpy.asarray(tensor), "
                           "torch.from_dlpack(tensor) and others use its memory.")
      .def_property_readonly("shape",
                             [](const PythonTensor& self) {
                               return py::tuple(py::cast(std::vector<std::int64_t>(
                                   self.tensor.shape().begin(), self.tensor.shape().end())));
                             })
      .def_property_readonly(
          "dtype", [](const PythonTensor& self) { return std::string(name_of(self.tensor.dtype())); })
      .def_property_readonly("device",
                             [](const PythonTensor& self) { return self.tensor.device().to_string(); })
      .def("numpy", &to_numpy, "An array of the same memory. TypeError for a tensor on a GPU or of bf16.")
      .def(
          "__array__",
          [](const PythonTensor& self, const py::object& dtype, const py::object& copy) {
            const py::object array = to_numpy(self);
            if (!dtype.is_none()) return array.attr("astype")(dtype, py::arg("copy") = false);
            return copy.is_none() || !copy.cast<bool>() ? array : array.attr("copy")();
          },
          py::arg("dtype") = py::none(), py::arg("copy") = py::none())
      .def(
          "to",
          [](const PythonTensor& self, const std::string& device) {
            const py::gil_scoped_release release;
            return PythonTensor{self.tensor.to(parse_device(device)),
                                self.writable || self.tensor.device() != parse_device(device)};
          },
          py::arg("device"), "This tensor if it is on the device, otherwise a copy there.")
      .def("__dlpack__", &to_dlpack, py::arg("stream") = py::none())
      .def("__dlpack_device__", &dlpack_device)
      .def("__len__",
           [](const PythonTensor& self) {
             if (self.tensor.rank() == 0) throw py::type_error("a tensor without axes has no length");
             return self.tensor.size(0);
           })
      .def("__repr__", [](const PythonTensor& self) {
        std::ostringstream text;
        text << self.tensor;
        return text.str();
      });
  module.def("from_numpy", &from_numpy, py::arg("array").noconvert(),
             "A Tensor of the array's memory. Strides may be any of whole elements, but not negative.");
  module.def("from_dlpack", &from_dlpack, py::arg("source"),
             "A Tensor of the memory of another library's, such as torch.Tensor or cupy.ndarray.");
}

}  // namespace tandem
