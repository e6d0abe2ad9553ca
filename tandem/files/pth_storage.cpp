#include "tandem/files/pth_storage.h"

#include <algorithm>
#include <bit>
#include <concepts>
#include <cstring>

#include "tandem/files/small_floats.h"

namespace tandem {
namespace {

static_assert(std::endian::native == std::endian::little, "storages are little-endian and copied unchanged");

constexpr StorageType storage_types[] = {
    {"torch.FloatStorage", "F32", StorageElement::same, 4, DType::f32},
    {"torch.DoubleStorage", "F64", StorageElement::same, 8, DType::f64},
    {"torch.BFloat16Storage", "BF16", StorageElement::same, 2, DType::bf16},
    {"torch.HalfStorage", "F16", StorageElement::f16, 2, DType::f32},
    {"torch.ByteStorage", "U8", StorageElement::same, 1, DType::u8},
    {"torch.BoolStorage", "BOOL", StorageElement::same, 1, DType::u8},
    {"torch.CharStorage", "I8", StorageElement::i8, 1, DType::i32},
    {"torch.ShortStorage", "I16", StorageElement::i16, 2, DType::i32},
    {"torch.IntStorage", "I32", StorageElement::same, 4, DType::i32},
    {"torch.LongStorage", "I64", StorageElement::same, 8, DType::i64},
    {"torch.UntypedStorage", "U8", StorageElement::same, 1, DType::u8},
    {"torch.storage.UntypedStorage", "U8", StorageElement::same, 1, DType::u8},
};

// Writes the elements in row-major order.
template <class From, class To, class Convert>
void copy_elements(const StorageView& view, std::string_view data, std::byte* to, Convert convert) {
  if constexpr (std::same_as<From, To>)
    if (view.strides == contiguous_strides(view.shape) && view.shape.numel() > 0) {
      std::memcpy(to, data.data() + static_cast<std::size_t>(view.offset) * sizeof(From),
                  static_cast<std::size_t>(view.shape.numel()) * sizeof(From));
      return;
    }
  const int rank = view.shape.rank();
  Dims index = Dims::filled(rank, 0);
  std::int64_t at = view.offset;
  for (std::int64_t i = 0; i < view.shape.numel(); ++i) {
    From value;
    std::memcpy(&value, data.data() + static_cast<std::size_t>(at) * sizeof(From), sizeof(From));
    const To converted = convert(value);
    std::memcpy(to + static_cast<std::size_t>(i) * sizeof(To), &converted, sizeof(To));
    for (int axis = rank - 1; axis >= 0; --axis) {
      at += view.strides[axis];
      if (++index[axis] < view.shape[axis]) break;
      at -= index[axis] * view.strides[axis];
      index[axis] = 0;
    }
  }
}

template <class T>
void copy_same(const StorageView& view, std::string_view data, std::byte* to) {
  copy_elements<T, T>(view, data, to, [](T value) { return value; });
}

void copy_bytes_of(const StorageView& view, std::uint64_t element_size, std::string_view data,
                   std::byte* to) {
  if (element_size == 1) copy_same<std::uint8_t>(view, data, to);
  if (element_size == 2) copy_same<std::uint16_t>(view, data, to);
  if (element_size == 4) copy_same<std::uint32_t>(view, data, to);
  if (element_size == 8) copy_same<std::uint64_t>(view, data, to);
}

}  // namespace

const StorageType* find_storage_type(std::string_view name) {
  const auto* found = std::ranges::find(storage_types, name, &StorageType::name);
  return found == std::end(storage_types) ? nullptr : found;
}

Tensor copy_view(const StorageView& view, const StorageType& type, std::string_view data) {
  const Tensor tensor = Tensor::empty(view.shape, type.dtype);
  const auto widen = [](auto value) { return std::int32_t{value}; };
  switch (type.element) {
    case StorageElement::same:
      copy_bytes_of(view, type.element_size, data, tensor.bytes());
      break;
    case StorageElement::f16:
      copy_elements<std::uint16_t, float>(view, data, tensor.bytes(), from_half);
      break;
    case StorageElement::i8:
      copy_elements<std::int8_t, std::int32_t>(view, data, tensor.bytes(), widen);
      break;
    case StorageElement::i16:
      copy_elements<std::int16_t, std::int32_t>(view, data, tensor.bytes(), widen);
      break;
  }
  return tensor;
}

std::vector<std::byte> view_bytes(const StorageView& view, const StorageType& type, std::string_view data) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(view.shape.numel()) * type.element_size);
  copy_bytes_of(view, type.element_size, data, bytes.data());
  return bytes;
}

}  // namespace tandem
