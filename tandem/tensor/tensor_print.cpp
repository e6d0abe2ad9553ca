// How a tensor is written to a stream:
//   tensor([[ 1, 2.5],
//           [-3,   4]], shape [2, 2], f32, cpu)
#include <fmt/format.h>

#include <algorithm>
#include <ostream>
#include <string>
#include <vector>

#include "tandem/core/on_dtype.h"
#include "tandem/tensor/tensor.h"

namespace tandem {
namespace {

constexpr std::int64_t max_numel = 200;  // longer tensors are shortened
constexpr std::int64_t edge = 3;         // elements at each end of a shortened axis
constexpr const char* ellipsis = "…";

template <class T>
std::string text_of(T value) {
  if constexpr (std::integral<T>)
    return fmt::format("{}", value);
  else
    return fmt::format("{:.5g}", static_cast<double>(static_cast<ComputeType<T>>(value)));
}

// The elements of a vector, as texts.
std::vector<std::string> texts_of(const Tensor& x) {
  std::vector<std::string> texts;
  on_dtype(AllTypes{}, x.dtype(), "print", [&]<class T>() {
    for (const T value : x.to_vector<T>()) texts.push_back(text_of(value));
  });
  return texts;
}

// The elements of `x` that are shown, in order; "…" takes no part.
class Printer {
 public:
  explicit Printer(const Tensor& x) : shortens_(x.numel() > max_numel) { collect(x); }

  std::string text(const Shape& shape) {
    for (const std::string& element : elements_) width_ = std::max(width_, element.size());
    std::string result;
    write(shape, 0, result);
    return result;
  }

 private:
  bool is_shortened(std::int64_t size) const { return shortens_ && size > 2 * edge; }

  void collect(const Tensor& x) {
    if (x.rank() > 0 && is_shortened(x.size(0))) {
      collect_all(x.slice(0, 0, edge));
      collect_all(x.slice(0, x.size(0) - edge, x.size(0)));
    } else {
      collect_all(x);
    }
  }
  void collect_all(const Tensor& x) {
    if (x.rank() > 1 && shortens_) {
      for (std::int64_t i = 0; i < x.size(0); ++i) collect(x[i]);
    } else {
      for (std::string& element : texts_of(x)) elements_.push_back(std::move(element));
    }
  }

  void write(const Shape& shape, int axis, std::string& into) {
    if (axis == shape.rank()) {
      const std::string& element = elements_[next_++];
      if (axis > 0) into.append(width_ - element.size(), ' ');
      into += element;
      return;
    }
    const std::int64_t size = shape[axis];
    const int inner_axes = shape.rank() - axis - 1;
    constexpr int indent = 7;  // "tensor("
    const std::string separator =
        inner_axes == 0 ? ", " : fmt::format(",{:\n>{}}{:>{}}", "", inner_axes, "", indent + axis + 1);
    into += '[';
    for (std::int64_t i = 0; i < size; ++i) {
      if (i > 0) into += separator;
      if (i == edge && is_shortened(size)) {
        into += ellipsis;
        into += separator;
        i = size - edge;
      }
      write(shape, axis + 1, into);
    }
    into += ']';
  }

  bool shortens_;
  std::vector<std::string> elements_;
  std::size_t next_ = 0, width_ = 0;
};

}  // namespace

std::ostream& operator<<(std::ostream& out, const Tensor& tensor) {
  if (!tensor.defined()) return out << "tensor(undefined)";
  const bool is_small = tensor.numel() <= max_numel;
  const Tensor x = is_small ? tensor.detach().cpu() : tensor.detach();
  // An axis of size 0 leaves only brackets, which the shape says better.
  const std::string values = tensor.numel() == 0 ? "[]" : Printer(x).text(tensor.shape());
  return out << "tensor(" << values << ", shape " << tensor.shape() << ", " << tensor.dtype() << ", "
             << tensor.device() << (tensor.requires_grad() ? ", requires_grad)" : ")");
}

}  // namespace tandem
