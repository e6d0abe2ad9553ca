#include "tandem/tensor/copy.h"

#include <cstdint>
#include <cstring>

#include "tandem/core/error.h"
#include "tandem/core/parallel.h"
#include "tandem/device/driver.h"
#include "tandem/device/on_backend.h"
#include "tandem/device/stream.h"
#include "tandem/tensor/copy_kernel.h"

namespace tandem {
namespace detail {
namespace {

template <class Word>
void copy_words(std::byte* to_bytes, const std::byte* from_bytes, const Layout<2>& layout) {
  auto* to = reinterpret_cast<Word*>(to_bytes);
  auto* from = reinterpret_cast<const Word*>(from_bytes);
  const std::int64_t to_step = layout.strides[0][layout.rank - 1],
                     from_step = layout.strides[1][layout.rank - 1];
  parallel_for(layout.numel, 1 << 15, [&](std::int64_t begin, std::int64_t end) {
    for_each_run(layout, begin, end, [&](const auto& offsets, std::int64_t count) {
      Word* out = to + offsets[0];
      const Word* in = from + offsets[1];
      if (to_step == 1 && from_step == 1)
        std::memcpy(out, in, count * sizeof(Word));
      else
        for (std::int64_t i = 0; i < count; ++i) out[i * to_step] = in[i * from_step];
    });
  });
}

}  // namespace

template <>
void copy_kernel<Backend::cpu>(std::byte* to, const std::byte* from, std::size_t element_size,
                               const Layout<2>& layout, StreamView) {
  switch (element_size) {
    case 1:
      return copy_words<std::uint8_t>(to, from, layout);
    case 2:
      return copy_words<std::uint16_t>(to, from, layout);
    case 4:
      return copy_words<std::uint32_t>(to, from, layout);
    case 8:
      return copy_words<std::uint64_t>(to, from, layout);
    default:
      expect(false);
  }
}

template <>
void clear_kernel<Backend::cpu>(std::byte* to, std::size_t bytes, StreamView) {
  parallel_for(static_cast<std::int64_t>(bytes), 1 << 20,
               [&](std::int64_t begin, std::int64_t end) { std::memset(to + begin, 0, end - begin); });
}

}  // namespace detail

void copy_into(const Tensor& to, const Tensor& from) {
  expect(to.shape() == from.shape() && to.dtype() == from.dtype() && to.device() == from.device());
  if (to.numel() == 0) return;
  const std::size_t size = size_of(to.dtype());
  const StreamView stream = current_stream(to.device());
  const auto layout = detail::make_layout<2>(to.shape(), {to.strides(), from.strides()});
  on_backend(to.device(), "copy", [&]<Backend B>() {
    if (layout.all_dense())
      copy_bytes<B>(to.bytes(), from.bytes(), layout.numel * size, stream);
    else
      detail::copy_kernel<B>(to.bytes(), from.bytes(), size, layout, stream);
  });
}

void clear(const Tensor& tensor) {
  expect(tensor.is_contiguous());
  if (tensor.numel() == 0) return;
  on_backend(tensor.device(), "clear", [&]<Backend B>() {
    detail::clear_kernel<B>(tensor.bytes(), tensor.numel() * size_of(tensor.dtype()),
                            current_stream(tensor.device()));
  });
}

}  // namespace tandem
