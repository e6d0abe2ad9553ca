// NCCL, opened when it is first needed (core/shared_library.h): neither a build nor a machine must have it.
// What is declared here has had this form since NCCL 2.7 and is guaranteed by its major version 2.
#pragma once

#include <cstddef>
#include <string>

namespace tandem {

struct NcclCommunicator;  // NCCL's own

struct NcclUniqueId {
  char bytes[128];
};

// The functions, named as in nccl.h. Streams are those of StreamView; every result but 0 is an error.
struct NcclLibrary {
  static constexpr int in_progress = 7;  // ncclInProgress
  static constexpr int bytes = 1;        // ncclUint8

  int (*get_version)(int* version);
  int (*get_unique_id)(NcclUniqueId* id);
  int (*comm_init_rank)(NcclCommunicator** made, int ranks, NcclUniqueId id, int rank);
  int (*comm_abort)(NcclCommunicator* communicator);
  int (*comm_get_async_error)(NcclCommunicator* communicator, int* error);
  const char* (*get_error_string)(int result);
  const char* (*get_last_error)(NcclCommunicator* communicator);
  int (*group_start)();
  int (*group_end)();
  int (*send)(const void* from, std::size_t count, int type, int to, NcclCommunicator* communicator,
              void* stream);
  int (*receive)(void* to, std::size_t count, int type, int from, NcclCommunicator* communicator,
                 void* stream);
  int (*all_gather)(const void* mine, void* all, std::size_t count, int type, NcclCommunicator* communicator,
                    void* stream);

  std::string version() const;  // "2.28.9"
  // Error, with NCCL's own words, unless `result` is 0.
  void require(int result, const char* call) const;
};

// Opens NCCL. Error when it is not installed or too old.
const NcclLibrary& nccl_library();

// Whether it is installed, as a clause: "NCCL 2 is not installed (libnccl.so.2)". Empty if it is.
std::string missing_nccl();

}  // namespace tandem
