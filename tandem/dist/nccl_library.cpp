#include "tandem/dist/nccl_library.h"

#include <fmt/format.h>

#include <cstdlib>

#include "tandem/core/check.h"
#include "tandem/core/shared_library.h"

namespace tandem {
namespace {

SharedLibrary::Options library_options() {
  SharedLibrary::Options options{.name = "NCCL 2", .files = {"libnccl.so.2"}, .folders = {}};
  const auto add = [&](const std::string& folder) {
    for (const char* part : {"/lib64", "/lib"}) options.folders.emplace_back(folder + part);
  };
  for (const char* variable : {"NCCL_HOME", "CUDA_HOME", "CUDA_PATH"})
    if (const char* const folder = std::getenv(variable)) add(folder);
  add("/usr/local/cuda");
  return options;
}

SharedLibrary& shared_library() {
  static SharedLibrary library(library_options());
  return library;
}

// Finds a function of the type of `to`.
template <class Function>
void find(Function& to, const char* name) {
  to = shared_library().function<Function>(name);
}

NcclLibrary open_library() {
  NcclLibrary nccl{};
  find(nccl.get_version, "ncclGetVersion");
  find(nccl.get_unique_id, "ncclGetUniqueId");
  find(nccl.comm_init_rank, "ncclCommInitRank");
  find(nccl.comm_abort, "ncclCommAbort");
  find(nccl.comm_get_async_error, "ncclCommGetAsyncError");
  find(nccl.get_error_string, "ncclGetErrorString");
  find(nccl.get_last_error, "ncclGetLastError");
  find(nccl.group_start, "ncclGroupStart");
  find(nccl.group_end, "ncclGroupEnd");
  find(nccl.send, "ncclSend");
  find(nccl.receive, "ncclRecv");
  find(nccl.all_gather, "ncclAllGather");
  return nccl;
}

}  // namespace

std::string NcclLibrary::version() const {
  int version = 0;
  require(get_version(&version), "ncclGetVersion");
  return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

void NcclLibrary::require(int result, const char* call) const {
  if (result == 0) [[likely]]
    return;
  const char* const details = get_last_error(nullptr);
  fail("[nccl] {} failed: {}{}{}", call, get_error_string(result), details && *details ? ": " : "",
       details ? details : "");
}

const NcclLibrary& nccl_library() {
  static const NcclLibrary nccl = open_library();
  return nccl;
}

std::string missing_nccl() {
  return shared_library().is_installed() ? "" : shared_library().missing();
}

}  // namespace tandem
