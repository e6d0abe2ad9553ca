#include "tandem/device/shared_buffer.h"

#include "tandem/core/check.h"
#include "tandem/device/driver.h"
#include "tandem/device/on_backend.h"

namespace tandem {
namespace {

// CUDA shares whole allocations. Blocks of this granularity are not cut out of a larger one.
constexpr std::size_t granularity = 2 << 20;

std::size_t rounded_up(std::size_t bytes) {
  return (bytes + granularity - 1) / granularity * granularity;
}

void check_cuda(Device device) {
  check(device.is_cuda(), "[shared buffer] expected a GPU, got {}", device.to_string());
}

void copy(void* to, const void* from, std::size_t bytes, Device device) {
  const StreamView stream = current_stream(device);
  on_backend(device, "shared buffer", [&]<Backend B>() { copy_bytes<B>(to, from, bytes, stream); });
  stream.synchronize();
}

}  // namespace

SharedBuffer::SharedBuffer(std::size_t bytes, Device device) : size_(bytes) {
  check_cuda(device);
  buffer_ = Buffer(rounded_up(bytes), current_stream(device));
}

MemoryHandle SharedBuffer::handle() const {
  MemoryHandle handle{};
  on_backend(buffer_.device(), "shared buffer",
             [&]<Backend B>() { export_memory<B>(buffer_.data(), handle.data()); });
  return handle;
}

void SharedBuffer::write(std::size_t offset, std::span<const std::byte> values) {
  expect(offset + values.size() <= size_);
  copy(buffer_.data() + offset, values.data(), values.size(), buffer_.device());
}

void SharedBuffer::read(std::size_t offset, std::span<std::byte> values) const {
  expect(offset + values.size() <= size_);
  copy(values.data(), buffer_.data() + offset, values.size(), buffer_.device());
}

OpenedBuffer::OpenedBuffer(const MemoryHandle& handle, Device device) : device_(device) {
  check_cuda(device);
  on_backend(device_, "shared buffer",
             [&]<Backend B>() { data_ = static_cast<std::byte*>(open_memory<B>(handle.data())); });
}

OpenedBuffer::~OpenedBuffer() {
  on_backend(device_, "shared buffer", [&]<Backend B>() { close_memory<B>(data_); });
}

void synchronize_default_stream(Device device) {
  on_backend(device, "synchronize", [&]<Backend B>() { synchronize_stream<B>({device, nullptr}); });
}

}  // namespace tandem
