#include "tandem/train/rank_cpus.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "tandem/core/parallel.h"
#include "tandem/core/shard_tree.h"
#include "tandem/core/thread_count.h"
#include "tandem/train/ranks.h"

namespace tandem {
namespace {

// The masks of the ranks of this rank's node.
std::vector<CpuList> gather_masks(Group& group) {
  const CpuList mine = process_cpus();
  const std::vector<std::string> all =
      gather_texts(group, {reinterpret_cast<const char*>(mine.data()), mine.size() * sizeof(mine.front())});
  std::vector<CpuList> masks;
  for (const Place& place : group.places()) {
    if (place.node != group.place().node) continue;
    const std::string& bytes = all[static_cast<std::size_t>(place.rank)];
    CpuList cpus(bytes.size() / sizeof(cpus.front()));
    std::ranges::copy(bytes, reinterpret_cast<char*>(cpus.data()));
    masks.push_back(std::move(cpus));
  }
  return masks;
}

}  // namespace

CpuList part_of_cpus(CpuList cpus, int ranks, int rank, const CoreFunction& core) {
  const auto count = static_cast<std::int64_t>(cpus.size());
  if (count < ranks) return cpus;
  std::ranges::stable_sort(cpus, {}, [&](int cpu) {
    const CpuCore of_cpu = core(cpu);
    return std::pair(of_cpu.package, of_cpu.first_cpu);
  });
  const IndexRange part = part_of(count, ranks, rank);
  CpuList own(cpus.begin() + part.begin, cpus.begin() + part.end);
  std::ranges::sort(own);
  return own;
}

RankCpus share_cpus(const NodeCpus& node, int local_rank, const CoreFunction& core) {
  const auto own = node.masks.begin() + local_rank;
  const int sharing = static_cast<int>(std::ranges::count(node.masks, *own));
  const int before = static_cast<int>(std::count(node.masks.begin(), own, *own));
  RankCpus share{.cpus = part_of_cpus(*own, sharing, before, core)};
  const int cpus = static_cast<int>(own->size()) < sharing ? 1 : static_cast<int>(share.cpus.size());
  share.usable = std::max(1, std::min(cpus, node.quota / static_cast<int>(node.masks.size())));
  return share;
}

int cpus_of_bound_ranks(const NodeCpus& node, const CoreFunction& core) {
  std::set<int> used;
  for (const CpuList& mask : node.masks) {
    if (mask.empty() || std::ranges::any_of(mask, [&](int cpu) { return core(cpu) != core(mask[0]); }))
      return 0;
    used.insert(mask.begin(), mask.end());
  }
  const int count = static_cast<int>(used.size());
  return count < std::min(node.permitted, node.quota) ? count : 0;
}

std::string take_share_of_cpus(Group& group, Launcher launcher) {
  if (launcher == Launcher::none || launcher == Launcher::local) return "";  // local ranks have their shares
  const NodeCpus node{.masks = gather_masks(group),
                      .permitted = static_cast<int>(permitted_cpus().size()),
                      .quota = cpu_quota()};
  const Place& place = group.place();
  const CpuList& mask = node.masks[static_cast<std::size_t>(place.local_rank)];
  if (mask.empty()) return "";
  const RankCpus share = share_cpus(node, place.local_rank);
  if (share.cpus == mask || set_process_cpus(share.cpus)) set_usable_cpus(share.usable);
  const bool is_wanted = is_thread_count_given() && team_size() <= static_cast<int>(mask.size());
  const int used = cpus_of_bound_ranks(node);
  if (used == 0 || is_wanted) return "";
  return fmt::format("{} has bound every rank to one core: {} of the {} CPUs of host {} are used",
                     name_of(launcher), used, std::min(node.permitted, node.quota), place.host);
}

}  // namespace tandem
