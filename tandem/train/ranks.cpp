#include "tandem/train/ranks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <span>
#include <sstream>

#include "tandem/tensor/copy.h"

namespace tandem {
namespace {

template <class T>
std::span<std::byte> writable_bytes(std::span<T> values) {
  return std::as_writable_bytes(values);
}

std::vector<std::int64_t> gather_sizes(Group& group, const std::string& mine) {
  const auto size = static_cast<std::int64_t>(mine.size());
  std::vector<std::int64_t> sizes(group.places().size());
  group.all_gather(std::as_bytes(std::span(&size, 1)), writable_bytes(std::span(sizes)));
  return sizes;
}

// Continues `hash` with the bytes of a tensor.
std::uint64_t hash_values(const Tensor& tensor, std::uint64_t hash) {
  constexpr std::uint64_t factor = 0x9E3779B97F4A7C15;  // 2⁶⁴ divided by the golden ratio
  const Tensor values = tensor.detach().to(cpu_device).contiguous();
  const std::size_t bytes = static_cast<std::size_t>(values.numel()) * size_of(values.dtype());
  std::uint64_t lanes[4] = {hash, 1, 2, 3};  // independent of each other, so that they are computed at once
  for (std::size_t at = 0; at < bytes; at += sizeof(lanes)) {
    std::uint64_t words[4] = {};
    std::memcpy(words, values.bytes() + at, std::min(sizeof(words), bytes - at));
    for (int i = 0; i < 4; ++i) {
      lanes[i] = (lanes[i] ^ words[i]) * factor;
      lanes[i] ^= lanes[i] >> 32;
    }
  }
  for (const std::uint64_t lane : lanes) hash = (hash ^ lane) * factor + 1;
  return hash;
}

}  // namespace

std::string hash_text(const Tensor& tensor) {
  return fmt::format("{:016x}", tensor.defined() && tensor.numel() > 0 ? hash_values(tensor, 0) : 0);
}

void fail_together(Group& group, const std::string& text) {
  if (group.place().rank == 0)
    group.fail(text);
  else
    group.barrier();
  throw Error(text);
}

std::string broadcast_text(Group& group, const std::string& mine) {
  const bool is_first = group.place().rank == 0;
  auto size = static_cast<std::int64_t>(mine.size());
  group.broadcast(writable_bytes(std::span(&size, 1)), 0);
  std::string text = is_first ? mine : std::string(static_cast<std::size_t>(size), ' ');
  if (size > 0) group.broadcast(writable_bytes(std::span(text)), 0);
  return text;
}

std::vector<std::string> gather_texts(Group& group, const std::string& mine) {
  const std::vector<std::int64_t> sizes = gather_sizes(group, mine);
  const auto longest = static_cast<std::size_t>(std::ranges::max(sizes));
  std::string padded = mine, all(longest * sizes.size(), ' ');
  padded.resize(longest);
  if (longest > 0) group.all_gather(std::as_bytes(std::span(padded)), writable_bytes(std::span(all)));
  std::vector<std::string> texts;
  for (std::size_t rank = 0; rank < sizes.size(); ++rank)
    texts.push_back(all.substr(rank * longest, static_cast<std::size_t>(sizes[rank])));
  return texts;
}

std::vector<std::string> collect_texts(Group& group, std::string mine) {
  const std::vector<std::int64_t> sizes = gather_sizes(group, mine);
  const int own = group.place().rank;
  std::vector<std::string> texts;
  for (int rank = 0; rank < group.place().size; ++rank) {
    std::string text = rank == own ? std::move(mine) : std::string();
    text.resize(static_cast<std::size_t>(sizes[static_cast<std::size_t>(rank)]));
    if (rank > 0 && !text.empty()) group.broadcast(writable_bytes(std::span(text)), rank);
    if (own == 0) texts.push_back(std::move(text));
  }
  return texts;
}

std::optional<TensorFile> broadcast_file(Group& group, std::optional<TensorFile> mine) {
  if (group.place().size == 1) return mine;
  const std::string bytes = broadcast_text(group, mine ? to_safetensors(*mine) : "");
  if (mine || bytes.empty()) return mine;
  return parse_safetensors(bytes, "checkpoint of rank 0");
}

void broadcast_weights(Group& group, const Module& model) {
  if (group.place().size == 1) return;
  for (const NamedTensor& each : model.state_dict()) {
    const Tensor values = each.tensor.detach().to(cpu_device).contiguous().clone();
    group.broadcast({values.bytes(), static_cast<std::size_t>(values.numel()) * size_of(values.dtype())}, 0);
    if (group.place().rank != 0) copy_into(each.tensor.detach(), values.to(each.tensor.device()));
  }
}

// Fields end with a zero byte, which no file name contains.
std::vector<SkippedSample> gather_skipped(Group& group, const std::vector<SkippedSample>& mine) {
  if (group.place().size == 1) return mine;
  std::string text;
  for (const SkippedSample& one : mine)
    for (const std::string& field :
         {std::to_string(one.sample), one.name, one.reason, std::to_string(static_cast<int>(one.kind))})
      text += field + '\0';
  std::map<std::string, SkippedSample> all;
  for (const std::string& of_rank : gather_texts(group, text)) {
    std::istringstream fields(of_rank);
    SkippedSample one;
    for (std::string sample, kind;
         std::getline(fields, sample, '\0') && std::getline(fields, one.name, '\0') &&
         std::getline(fields, one.reason, '\0') && std::getline(fields, kind, '\0');) {
      one.sample = std::stoi(sample);
      one.kind = static_cast<SkipKind>(std::stoi(kind));
      all.insert({one.name, one});
    }
  }
  std::vector<SkippedSample> sorted;
  for (const auto& [name, sample] : all) sorted.push_back(sample);
  return sorted;
}

void check_same_values(Group& group, const NamedTensors& tensors) {
  if (group.place().size == 1) return;
  std::uint64_t hash = 0;
  for (const NamedTensor& each : tensors) hash = hash_values(each.tensor, hash);
  std::vector<std::uint64_t> all(group.places().size());
  group.all_gather(std::as_bytes(std::span(&hash, 1)), writable_bytes(std::span(all)));
  for (const Place& place : group.places())
    if (all[static_cast<std::size_t>(place.rank)] != all[0])
      fail_together(group,
                    fmt::format("[train] ranks 0 (host {}) and {} (host {}) have different weights: one "
                                "of them has computed wrongly",
                                group.places()[0].host, place.rank, place.host));
}

std::string describe_first(Group& group, std::int64_t number) {
  const std::vector<Place>& places = group.places();
  if (places.size() == 1) return "";
  std::vector<std::int64_t> all(places.size());
  group.all_gather(std::as_bytes(std::span(&number, 1)), writable_bytes(std::span(all)));
  const auto lowest = std::ranges::min_element(all);
  const auto count = std::ranges::count(all, *lowest);
  if (count == std::ssize(all)) return ", on all ranks";
  const Place& first = places[static_cast<std::size_t>(lowest - all.begin())];
  return fmt::format(", first on rank {} (host {}){}", first.rank, first.host,
                     count > 1 ? fmt::format(" and {} more", count - 1) : "");
}

void check_ranks_agree(Group& group, const NamedTexts& texts) {
  if (group.place().size == 1) return;
  std::vector<Greeting> ranks;
  for (const std::string& text : gather_texts(group, encode({group.place(), texts})))
    ranks.push_back(decode(text));
  try {
    check_agreement(ranks);
  } catch (const Error& error) {
    fail_together(group, error.what());
  }
}

}  // namespace tandem
