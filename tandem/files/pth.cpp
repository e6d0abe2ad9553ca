// The two container formats of torch.save: a zip archive, and the legacy sequence of pickles and raw
// storages.
#include "tandem/files/pth.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <functional>
#include <map>

#include "tandem/core/check.h"
#include "tandem/files/pickle_scan.h"
#include "tandem/files/pth_state_dict.h"
#include "tandem/files/pth_stored.h"
#include "tandem/files/read_file.h"
#include "tandem/files/zip.h"
#include "tandem/text/utf8.h"

namespace tandem {
namespace {

// The entries of an archive below its top folder, by their path in it.
std::map<std::string, ZipEntry, std::less<>> archive_entries(std::string_view bytes,
                                                             const std::string& name) {
  std::vector<ZipEntry> all = read_zip(bytes, name);
  constexpr std::string_view pickle_name = "/data.pkl";
  std::string folder;
  for (const ZipEntry& entry : all)
    if (entry.name.ends_with(pickle_name) && entry.name.find('/') == entry.name.size() - pickle_name.size()) {
      check(folder.empty(), "[pth] {}: expected one data.pkl, got several", name);
      folder = entry.name.substr(0, entry.name.size() - pickle_name.size() + 1);
    }
  check(!folder.empty(), "[pth] {}: expected an archive of torch.save, got a zip archive without data.pkl",
        name);
  std::map<std::string, ZipEntry, std::less<>> entries;
  for (ZipEntry& entry : all)
    if (entry.name.starts_with(folder)) {
      std::string key = entry.name.substr(folder.size());
      entries.emplace(std::move(key), std::move(entry));
    }
  check(!entries.contains("constants.pkl"),
        "[pth] {}: expected weights (torch.save of a state dict), got a TorchScript program", name);
  return entries;
}

// Parses one of several concatenated pickles and removes it from `rest`. Names that are not on the closed
// list are reported before damage.
Pickle next_pickle(std::string_view& rest, const std::string& name) {
  PartialPickle part = parse_pickle_partly(rest, name);
  check_names(part.pickle, name);
  if (!part.problem.empty()) throw Error(part.problem);
  rest.remove_prefix(part.pickle.size);
  return std::move(part.pickle);
}

// What is made of the tensors while their storages are in memory.
using UseStateDict = std::function<void(const StateDict&)>;

void parse_zip_format(std::string_view bytes, const std::string& name, const UseStateDict& use) {
  const auto entries = archive_entries(bytes, name);
  std::string unpacked;
  if (const auto order = entries.find("byteorder"); order != entries.end())
    check(unpack_entry(order->second, unpacked, name) == "little",
          "[pth] {}: expected little-endian numbers, got a file written on a big-endian machine", name);
  std::deque<std::string> buffers(1);  // own the unpacked entries
  std::string_view bytes_of_pickle = unpack_entry(entries.at("data.pkl"), buffers[0], name);
  const Pickle pickle = next_pickle(bytes_of_pickle, name);
  check(bytes_of_pickle.empty(), "[pth] {}: expected one pickle in data.pkl, got {} bytes after it", name,
        bytes_of_pickle.size());
  StateDictReader reader(pickle, bytes.size(), name);
  StorageData storages;
  for (const StorageId& id : reader.storage_ids()) {
    const auto entry = entries.find(fmt::format("data/{}", id.key));
    if (entry == entries.end()) continue;  // reported with the tensor that needs it
    storages.emplace(id.key, unpack_entry(entry->second, buffers.emplace_back(), name));
  }
  use(reader.read(storages));
}

// Gives a file of another kind a better error than that of an unexpected opcode.
void check_format(std::string_view bytes, const std::string& name) {
  check(!bytes.empty(), "[pth] {}: the file is empty", name);
  check(is_zip(bytes) || begins_like_pickle(bytes),
        "[pth] {}: expected a safetensors or PyTorch file, got neither", name);
}

void parse_legacy_format(std::string_view bytes, const std::string& name, const UseStateDict& use) {
  std::string_view rest = bytes;
  for (int i = 0; i < legacy_header_pickles; ++i) {
    const Pickle header = next_pickle(rest, name);
    const PickleValue& root = header.at(header.root);
    check(i != 0 || is_legacy_magic(root), "[pth] {}: expected a file of torch.save, got another pickle",
          name);
    for (std::size_t item = 0; i == 2 && item + 1 < root.items.size(); item += 2)
      check(
          header.at(root.items[item]).text != "little_endian" || header.at(root.items[item + 1]).integer == 1,
          "[pth] {}: expected little-endian numbers, got a file written on a big-endian machine", name);
  }
  const Pickle pickle = next_pickle(rest, name);
  const Pickle keys = next_pickle(rest, name);
  StateDictReader reader(pickle, bytes.size(), name);
  std::map<std::string_view, const StorageType*> types;
  for (const StorageId& id : reader.storage_ids()) types.emplace(id.key, id.type);

  StorageData storages;
  for (const std::uint32_t id : keys.at(keys.root).items) {
    const std::string_view key = keys.at(id).text;
    const auto type = types.find(key);
    check(type != types.end(), "[pth] {}: damaged: no tensor uses the storage '{}'", name, one_line(key));
    std::uint64_t numel = 0;
    check(rest.size() >= sizeof numel, "[pth] {}: the file is truncated", name);
    std::memcpy(&numel, rest.data(), sizeof numel);
    rest.remove_prefix(sizeof numel);
    check(numel <= rest.size() / type->second->element_size,
          "[pth] {}: the file is truncated in storage '{}'", name, one_line(key));
    storages.emplace(key, rest.substr(0, numel * type->second->element_size));
    rest.remove_prefix(numel * type->second->element_size);
  }
  use(reader.read(storages));
}

const char* pth_format(std::string_view bytes) {
  return is_zip(bytes) ? "pth zip" : "pth legacy";
}

void use_state_dict(std::string_view bytes, const std::string& name, const UseStateDict& use) {
  check_format(bytes, name);
  (is_zip(bytes) ? parse_zip_format : parse_legacy_format)(bytes, name, use);
}

}  // namespace

TensorFile parse_pth(std::string_view bytes, const std::string& name) {
  TensorFile file;
  use_state_dict(bytes, name, [&](const StateDict& found) {
    constexpr std::string_view data_parallel_prefix = "module.";
    const bool has_prefix = std::ranges::all_of(
        found.tensors, [&](const TensorSource& t) { return t.name.starts_with(data_parallel_prefix); });
    for (const TensorSource& source : found.tensors)
      file.tensors.push_back({source.name.substr(has_prefix ? data_parallel_prefix.size() : 0),
                              copy_view(source.view, *source.type, source.data)});
    if (!found.ignored.empty()) file.metadata["ignored"] = found.ignored;
  });
  file.metadata["format"] = pth_format(bytes);
  return file;
}

StoredPth parse_pth_stored(std::string_view bytes, const std::string& name) {
  StoredPth file;
  use_state_dict(bytes, name, [&](const StateDict& found) {
    for (const TensorSource& source : found.tensors)
      file.tensors.push_back({source.name, source.type->safetensors_name, source.view.shape,
                              view_bytes(source.view, *source.type, source.data)});
    file.ignored = found.ignored;
  });
  return file;
}

TensorFile read_pth(const std::filesystem::path& path) {
  return parse_pth(read_file("pth", path, max_weight_bytes), path.string());
}

std::vector<PthName> pth_names(std::string_view bytes, const std::string& name) {
  PickleScan scan = scan_pickles(bytes, name);
  if (scan.names.empty()) check_format(bytes, name);
  return std::move(scan.names);
}

}  // namespace tandem
