// Dispatch from a run-time Device to a compile-time Backend, done once at the top of an operation.
#pragma once

#include "tandem/device/device.h"

namespace tandem {

/// Whether this build supports CUDA.
inline constexpr bool has_cuda = TANDEM_HAS_CUDA;

/// Makes `device` the current device of the calling thread.
template <Backend B>
void activate(Device device);

namespace detail {
[[noreturn]] void throw_no_cuda(const char* op);
}  // namespace detail

/// Calls `f.operator()<B>()` for the device's backend. Throws Error, naming `op`, for a GPU in a build
/// without CUDA, where the CUDA branch is not instantiated, so that no stubs are needed:
/// `on_backend(x.device(), "relu", [&]<Backend B>() { relu_kernel<B>(...); })`.
template <class F>
auto on_backend(Device device, const char* op, F&& f) {
  if (device.is_cuda()) {
    if constexpr (has_cuda) {
      activate<Backend::cuda>(device);
      return f.template operator()<Backend::cuda>();
    } else {
      detail::throw_no_cuda(op);
    }
  }
  return f.template operator()<Backend::cpu>();
}

}  // namespace tandem
