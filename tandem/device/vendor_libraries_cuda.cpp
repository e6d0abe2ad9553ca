#include "tandem/device/vendor_libraries.h"

#include <cublas_v2.h>
#include <cudnn.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "tandem/core/shared_library.h"

namespace tandem {
namespace {

SharedLibrary::Options vendor_options(const char* name, const char* file, int version) {
  SharedLibrary::Options options{.name = fmt::format("{} {}", name, version),
                                 .files = {fmt::format("{}.so.{}", file, version)},
                                 .folders = {}};
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"})
    if (const char* folder = std::getenv(variable))
      options.folders.emplace_back(fmt::format("{}/lib64", folder));
  options.folders.emplace_back("/usr/local/cuda/lib64");
  options.folders.emplace_back(fmt::format("/usr/local/cuda-{}/lib64", CUBLAS_VER_MAJOR));
  return options;
}

SharedLibrary& cublas_library() {
  static SharedLibrary library(vendor_options("cuBLAS", "libcublas", CUBLAS_VER_MAJOR));
  return library;
}

SharedLibrary& cudnn_library() {
  static SharedLibrary library(vendor_options("cuDNN", "libcudnn", CUDNN_MAJOR));
  return library;
}

// A function's name as a template argument, so that each function has its own address below.
template <std::size_t N>
struct Name {
  char text[N];
  consteval Name(const char (&from)[N]) { std::copy_n(from, N, text); }  // NOLINT: implicit on purpose
};

template <Name name, class Result = cublasStatus_t, class... Args>
Result cublas(Args... args) {
  static const auto function = cublas_library().function<Result (*)(Args...)>(name.text);
  return function(args...);
}

template <Name name, class Result = cudnnStatus_t, class... Args>
Result cudnn(Args... args) {
  static const auto function = cudnn_library().function<Result (*)(Args...)>(name.text);
  return function(args...);
}

}  // namespace

std::string missing_vendor_library() {
  for (const SharedLibrary* library : {&cublas_library(), &cudnn_library()})
    if (!library->is_installed()) return library->missing();
  return "";
}

}  // namespace tandem

// Hidden: another library of the process must not find these in place of the vendor's.
#pragma GCC visibility push(hidden)

using tandem::cublas;
using tandem::cudnn;

cublasStatus_t cublasCreate_v2(cublasHandle_t* handle) {
  return cublas<"cublasCreate_v2">(handle);
}
cublasStatus_t cublasDestroy_v2(cublasHandle_t handle) {
  return cublas<"cublasDestroy_v2">(handle);
}
cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream) {
  return cublas<"cublasSetStream_v2">(handle, stream);
}
cublasStatus_t cublasSetPointerMode_v2(cublasHandle_t handle, cublasPointerMode_t mode) {
  return cublas<"cublasSetPointerMode_v2">(handle, mode);
}
cublasStatus_t cublasGetProperty(libraryPropertyType type, int* value) {
  return cublas<"cublasGetProperty">(type, value);
}
const char* cublasGetStatusString(cublasStatus_t status) {
  return cublas<"cublasGetStatusString", const char*>(status);
}
cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b, int m,
                            int n, int k, const void* alpha, const void* a, cudaDataType a_type, int lda,
                            const void* b, cudaDataType b_type, int ldb, const void* beta, void* c,
                            cudaDataType c_type, int ldc, cublasComputeType_t compute_type,
                            cublasGemmAlgo_t algorithm) {
  return cublas<"cublasGemmEx">(handle, op_a, op_b, m, n, k, alpha, a, a_type, lda, b, b_type, ldb, beta, c,
                                c_type, ldc, compute_type, algorithm);
}
cublasStatus_t cublasGemmStridedBatchedEx(cublasHandle_t handle, cublasOperation_t op_a,
                                          cublasOperation_t op_b, int m, int n, int k, const void* alpha,
                                          const void* a, cudaDataType a_type, int lda, long long stride_a,
                                          const void* b, cudaDataType b_type, int ldb, long long stride_b,
                                          const void* beta, void* c, cudaDataType c_type, int ldc,
                                          long long stride_c, int batches, cublasComputeType_t compute_type,
                                          cublasGemmAlgo_t algorithm) {
  return cublas<"cublasGemmStridedBatchedEx">(handle, op_a, op_b, m, n, k, alpha, a, a_type, lda, stride_a, b,
                                              b_type, ldb, stride_b, beta, c, c_type, ldc, stride_c, batches,
                                              compute_type, algorithm);
}

cudnnStatus_t cudnnCreate(cudnnHandle_t* handle) {
  return cudnn<"cudnnCreate">(handle);
}
cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) {
  return cudnn<"cudnnDestroy">(handle);
}
cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream) {
  return cudnn<"cudnnSetStream">(handle, stream);
}
std::size_t cudnnGetVersion() {
  return cudnn<"cudnnGetVersion", std::size_t>();
}
const char* cudnnGetErrorString(cudnnStatus_t status) {
  return cudnn<"cudnnGetErrorString", const char*>(status);
}
cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type,
                                           cudnnBackendDescriptor_t* created) {
  return cudnn<"cudnnBackendCreateDescriptor">(type, created);
}
cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t descriptor) {
  return cudnn<"cudnnBackendDestroyDescriptor">(descriptor);
}
cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t descriptor) {
  return cudnn<"cudnnBackendFinalize">(descriptor);
}
cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, std::int64_t count,
                                       const void* values) {
  return cudnn<"cudnnBackendSetAttribute">(descriptor, name, type, count, values);
}
cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, std::int64_t max_count,
                                       std::int64_t* count, void* values) {
  return cudnn<"cudnnBackendGetAttribute">(descriptor, name, type, max_count, count, values);
}
cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan,
                                  cudnnBackendDescriptor_t pack) {
  return cudnn<"cudnnBackendExecute">(handle, plan, pack);
}

#pragma GCC visibility pop
