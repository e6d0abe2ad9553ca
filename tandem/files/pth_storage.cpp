#include "tandem/files/pth_storage.h"

#include <algorithm>
#include <bit>
#include <concepts>
#include <cstring>

namespace tandem {
namespace {

static_assert(std::endian::native == std::endian::little, "storages are little-endian and copied unchanged");

constexpr StorageType storage_types[] = {
    {"torch.FloatStorage", StorageElement::f32, 4, DType::f32},
    {"torch.DoubleStorage", StorageElement::f64, 8, DType::f64},
    {"torch.BFloat16Storage", StorageElement::bf16, 2, DType::bf16},
    {"torch.HalfStorage", StorageElement::f16, 2, DType::f32},
    {"torch.ByteStorage", StorageElement::u8, 1, DType::u8},
    {"torch.BoolStorage", StorageElement::u8, 1, DType::u8},
    {"torch.CharStorage", StorageElement::i8, 1, DType::i32},
    {"torch.ShortStorage", StorageElement::i16, 2, DType::i32},
    {"torch.IntStorage", StorageElement::i32, 4, DType::i32},
    {"torch.LongStorage", StorageElement::i64, 8, DType::i64},
    {"torch.UntypedStorage", StorageElement::u8, 1, DType::u8},
    {"torch.storage.UntypedStorage", StorageElement::u8, 1, DType::u8},
};

float half_to_float(std::uint16_t half) {
  const std::uint32_t sign = std::uint32_t{half} >> 15 << 31;
  const std::uint32_t exponent = half >> 10 & 0x1F, fraction = half & 0x3FF;
  if (exponent == 0) {  // subnormal: a multiple of 2⁻²⁴
    const float magnitude = static_cast<float>(fraction) * 0x1p-24f;
    return sign != 0 ? -magnitude : magnitude;
  }
  const std::uint32_t wide = exponent == 0x1F ? 0xFF : exponent + 112;
  return std::bit_cast<float>(sign | wide << 23 | fraction << 13);
}

// Writes the elements in row-major order.
template <class From, class To, class Convert>
void copy_elements(const StorageView& view, std::string_view data, To* to, Convert convert) {
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
    to[i] = convert(value);
    for (int axis = rank - 1; axis >= 0; --axis) {
      at += view.strides[axis];
      if (++index[axis] < view.shape[axis]) break;
      at -= index[axis] * view.strides[axis];
      index[axis] = 0;
    }
  }
}

}  // namespace

const StorageType* find_storage_type(std::string_view name) {
  const auto* found = std::ranges::find(storage_types, name, &StorageType::name);
  return found == std::end(storage_types) ? nullptr : found;
}

Tensor copy_view(const StorageView& view, const StorageType& type, std::string_view data) {
  const Tensor tensor = Tensor::empty(view.shape, type.dtype);
  const auto copy_as = [&]<class T>(T*) {
    copy_elements<T>(view, data, tensor.data<T>(), [](T value) { return value; });
  };
  const auto widen = [](auto value) { return std::int32_t{value}; };
  switch (type.element) {
    case StorageElement::f32:
      copy_as(static_cast<float*>(nullptr));
      break;
    case StorageElement::f64:
      copy_as(static_cast<double*>(nullptr));
      break;
    case StorageElement::bf16:
      copy_as(static_cast<BFloat16*>(nullptr));
      break;
    case StorageElement::u8:
      copy_as(static_cast<std::uint8_t*>(nullptr));
      break;
    case StorageElement::i32:
      copy_as(static_cast<std::int32_t*>(nullptr));
      break;
    case StorageElement::i64:
      copy_as(static_cast<std::int64_t*>(nullptr));
      break;
    case StorageElement::f16:
      copy_elements<std::uint16_t>(view, data, tensor.data<float>(), half_to_float);
      break;
    case StorageElement::i8:
      copy_elements<std::int8_t>(view, data, tensor.data<std::int32_t>(), widen);
      break;
    case StorageElement::i16:
      copy_elements<std::int16_t>(view, data, tensor.data<std::int32_t>(), widen);
      break;
  }
  return tensor;
}

}  // namespace tandem
