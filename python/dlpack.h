// The structures of DLPack 0.x (https://dmlc.github.io/dlpack), by which libraries share the memory of
// tensors.
#pragma once

#include <cstdint>

namespace tandem::dlpack {

enum DeviceType : std::int32_t { cpu = 1, cuda = 2, cuda_host = 3 };
enum TypeCode : std::uint8_t { integer = 0, unsigned_integer = 1, real = 2, bfloat = 4 };

struct DLDevice {
  std::int32_t type;
  std::int32_t index;
};

struct DLDataType {
  std::uint8_t code;
  std::uint8_t bits;
  std::uint16_t lanes;
};

struct DLTensor {
  void* data;
  DLDevice device;
  std::int32_t rank;
  DLDataType dtype;
  std::int64_t* shape;
  std::int64_t* strides;  // in elements; null: row-major
  std::uint64_t byte_offset;
};

struct DLManagedTensor {
  DLTensor tensor;
  void* context;
  void (*deleter)(DLManagedTensor*);
};

}  // namespace tandem::dlpack
