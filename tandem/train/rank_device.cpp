#include "tandem/train/rank_device.h"

#include <cstdint>
#include <cstdlib>
#include <map>
#include <span>

#include "tandem/core/check.h"
#include "tandem/device/gpu_identity.h"
#include "tandem/device/on_backend.h"
#include "tandem/dist/nccl_library.h"
#include "tandem/train/ranks.h"

namespace tandem {
namespace {

// What must be the same on all ranks that compute on this device.
NamedTexts device_texts(Device device, bool uses_nccl) {
  NamedTexts texts{{"device", device.is_cuda() ? "cuda" : "cpu"}};
  if constexpr (has_cuda) {
    if (device.is_cuda()) {
      const GpuIdentity gpu = gpu_identity(device);
      texts.insert(texts.end(), {{"GPU", gpu.name}, {"cuBLAS", gpu.cublas}, {"cuDNN", gpu.cudnn}});
      if (uses_nccl) texts.emplace_back("NCCL", nccl_library().version());
    }
  }
  return texts;
}

// Error if two ranks have the same GPU, which NCCL refuses. NCCL_HOSTID, which makes it take them for GPUs of
// several nodes, is accepted: tests have one GPU only.
void check_own_gpus(Group& group, Device device) {
  if constexpr (has_cuda) {
    const bool pretends = std::getenv("NCCL_HOSTID") != nullptr;
    const GpuIdentity gpu = gpu_identity(device);
    const std::vector<std::string> all = gather_texts(group, pretends ? "" : gpu.name + ", " + gpu.uuid);
    std::map<std::string, std::size_t> rank_of;
    for (std::size_t rank = 0; rank < all.size(); ++rank) {
      if (all[rank].empty()) continue;
      const auto [first, is_new] = rank_of.emplace(all[rank], rank);
      if (!is_new)
        fail_together(group,
                      fmt::format("[train] ranks {} and {} (host {}) have the same GPU ({}): NCCL expects "
                                  "one for each rank",
                                  first->second, rank, group.places()[rank].host, all[rank]));
    }
  }
}

// Before anything is computed.
void check_devices(Group& group, Device device, bool exchange_through_cpu) {
  require_available(device);
  const bool uses_nccl = device.is_cuda() && !exchange_through_cpu;
  if (uses_nccl) check(missing_nccl().empty(), "[group] {}", missing_nccl());
  check_ranks_agree(group, device_texts(device, uses_nccl));
  if (uses_nccl) check_own_gpus(group, device);
}

}  // namespace

Device device_of_rank(const Place& place, Device first) {
  const int count = cuda_device_count();
  if (!first.is_cuda() || count == 0) return first;
  return cuda_device((first.index + place.local_rank) % count);
}

RankDevice choose_rank_device(Group& group, const FitOptions& options,
                              const std::function<DeviceChoice()>& choose) {
  const Place& place = group.place();
  DeviceChoice choice;
  if (place.rank == 0) choice = choose();
  if (place.size == 1) return {choice, choice.device};
  struct Wire {
    Device device;
    AugmentPlace augment_on;
    std::int32_t workers;
  } wire{choice.device, choice.augment_on, choice.workers.value_or(-1)};
  group.broadcast(std::as_writable_bytes(std::span(&wire, 1)), 0);
  const Device first = wire.device.is_cuda() ? options.device.value_or(cuda_device()) : wire.device;
  choice.device = device_of_rank(place, first);
  choice.augment_on = wire.augment_on;
  choice.workers = wire.workers < 0 ? std::nullopt : std::optional<int>(wire.workers);
  check_devices(group, choice.device, options.exchange_through_cpu);
  return {choice, first};
}

}  // namespace tandem
