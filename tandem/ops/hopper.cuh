// For CUDA sources only: the instructions of Hopper that wait for copies to shared memory, start them with
// tensor maps (TMA), and multiply by warpgroups.
#pragma once

#include <cuda.h>

#include <cstdint>

#include "tandem/device/cuda.h"

namespace tandem::detail {

// Creates tensor maps; null where the driver cannot.
inline auto tensor_map_encoder() {
  static const auto encode = [] {
    void* entry = nullptr;
    cudaDriverEntryPointQueryResult found{};
    cuda_check(
        cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &entry, 12000, cudaEnableDefault, &found),
        "cudaGetDriverEntryPointByVersion");
    return reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(entry);
  }();
  return encode;
}

// Starts a kernel that calls wait_for_previous_kernel(): its blocks may become resident, and prepare what
// does not depend on the previous kernel, while that one ends.
template <class... Parameters, class... Arguments>
void launch_early(void (*kernel)(Parameters...), int blocks, int threads, int shared_bytes, StreamView stream,
                  const Arguments&... arguments) {
  cuda_check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes),
             "cudaFuncSetAttribute");
  cudaLaunchAttribute attribute;
  attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(static_cast<unsigned>(blocks));
  config.blockDim = dim3(static_cast<unsigned>(threads));
  config.dynamicSmemBytes = static_cast<std::size_t>(shared_bytes);
  config.stream = cuda_stream(stream);
  config.attrs = &attribute;
  config.numAttrs = 1;
  cuda_check(cudaLaunchKernelEx(&config, kernel, arguments...), "cudaLaunchKernelEx");
}

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

// The next kernel's blocks may become resident as soon as all blocks of this one were here. Not before this
// one has waited for its predecessor, if it was launched early.
__device__ inline void allow_next_kernel() {
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
}

// Everything that earlier kernels of the stream wrote is visible to this thread afterwards, and to those that
// it wakes.
__device__ inline void wait_for_previous_kernel() {
  asm volatile("griddepcontrol.wait;" ::: "memory");
  allow_next_kernel();
}

__device__ inline std::uint32_t shared_address(const void* pointer) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(pointer));
}

__device__ inline void barrier_init(std::uint64_t* barrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)), "r"(arrivals)
               : "memory");
}

__device__ inline void barrier_arrive(std::uint64_t* barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(barrier)) : "memory");
}

__device__ inline void barrier_expect_bytes(std::uint64_t* barrier, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(barrier)),
               "r"(bytes)
               : "memory");
}

__device__ inline void barrier_wait(std::uint64_t* barrier, int phase) {
  asm volatile(
      "{\n"
      ".reg .pred done;\n"
      "again:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
      "@done bra finished;\n"
      "bra again;\n"
      "finished:\n"
      "}\n" ::"r"(shared_address(barrier)),
      "r"(phase)
      : "memory");
}

// After barrier_init(), before other threads or copies use the barriers.
__device__ inline void publish_barriers() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

// What this thread wrote to shared memory is seen by copies and products that are started later.
__device__ inline void publish_shared_writes() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

__device__ inline void fetch_2d(const CUtensorMap* map, std::uint32_t to, std::uint64_t* barrier, int x,
                                int y) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4}], "
      "[%2];" ::"r"(to),
      "l"(map), "r"(shared_address(barrier)), "r"(x), "r"(y)
      : "memory");
}

struct Corner {
  int c, x, y, n;
};

__device__ inline void fetch_4d(const CUtensorMap* map, std::uint32_t to, std::uint64_t* barrier,
                                const Corner& from) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5, "
      "%6}], [%2];" ::"r"(to),
      "l"(map), "r"(shared_address(barrier)), "r"(from.c), "r"(from.x), "r"(from.y), "r"(from.n)
      : "memory");
}

__device__ inline void store_4d(const CUtensorMap* map, std::uint32_t from, const Corner& to) {
  asm volatile(
      "cp.async.bulk.tensor.4d.global.shared::cta.bulk_group [%0, {%2, %3, %4, %5}], [%1];" ::"l"(map),
      "r"(from), "r"(to.c), "r"(to.x), "r"(to.y), "r"(to.n)
      : "memory");
}

__device__ inline void commit_stores() {
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

// All but the last `pending` groups of this thread's stores have read shared memory.
template <int pending>
__device__ inline void wait_for_stores() {
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(pending) : "memory");
}

__device__ inline void wgmma_fence() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

__device__ inline void wgmma_commit() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

template <int pending>
__device__ inline void wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(pending) : "memory");
}

// The wgmma matrix descriptor of rows of `width` bytes, 64 or 128, swizzled over as many bytes, in groups of
// eight rows.
template <int width>
__device__ inline std::uint64_t swizzled_descriptor(std::uint32_t address) {
  static_assert(width == 64 || width == 128);
  constexpr std::uint64_t swizzle = width == 128 ? 1 : 2;
  return (address & 0x3FFFF) >> 4 | std::uint64_t{1} << 16 | std::uint64_t{8 * width >> 4} << 32 |
         swizzle << 62;
}

// That of pieces of eight rows of 16 bytes, 128 bytes in sequence; `along` bytes to the next piece of the
// same rows, `across` bytes to the next eight rows.
__device__ inline std::uint64_t plain_descriptor(std::uint32_t address, int along, int across) {
  return (address & 0x3FFFF) >> 4 | static_cast<std::uint64_t>(along >> 4) << 16 |
         static_cast<std::uint64_t>(across >> 4) << 32;
}

#endif

}  // namespace tandem::detail
