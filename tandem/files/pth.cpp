// The two container formats of torch.save: a zip archive, and the legacy sequence of pickles and raw
// storages.
#include "tandem/files/pth.h"

#include <fmt/format.h>

#include <cstring>
#include <deque>
#include <limits>
#include <map>

#include "tandem/core/check.h"
#include "tandem/files/pth_state_dict.h"
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

TensorFile parse_zip_format(std::string_view bytes, const std::string& name) {
  const auto entries = archive_entries(bytes, name);
  std::string unpacked;
  if (const auto order = entries.find("byteorder"); order != entries.end())
    check(unpack_entry(order->second, unpacked, name) == "little",
          "[pth] {}: expected little-endian numbers, got a file written on a big-endian machine", name);
  std::deque<std::string> buffers(1);  // own the unpacked entries
  const Pickle pickle = parse_pickle(unpack_entry(entries.at("data.pkl"), buffers[0], name), name);
  check_calls(pickle, name);
  StateDictReader reader(pickle, bytes.size(), name);
  StorageData storages;
  for (const StorageId& id : reader.storage_ids()) {
    const auto entry = entries.find(fmt::format("data/{}", id.key));
    if (entry == entries.end()) continue;  // reported with the tensor that needs it
    storages.emplace(id.key, unpack_entry(entry->second, buffers.emplace_back(), name));
  }
  TensorFile file = reader.read(storages);
  file.metadata["format"] = "pth zip";
  return file;
}

// 0x1950a86a20f9469cfc6c, as written by protocol 2 and later, or in decimal by earlier ones.
bool is_legacy_magic(const PickleValue& value) {
  return value.kind == PickleKind::big_integer &&
         (value.text == std::string_view("\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19", 10) ||
          value.text == "119547037146038801333356");
}

// Parses one of several concatenated pickles and removes it from `rest`.
Pickle next_pickle(std::string_view& rest, const std::string& name) {
  Pickle pickle = parse_pickle(rest, name);
  rest.remove_prefix(pickle.size);
  return pickle;
}

// Gives a file of another kind a better error than that of an unexpected opcode.
void check_format(std::string_view bytes, const std::string& name) {
  check(!bytes.empty(), "[pth] {}: the file is empty", name);
  constexpr std::string_view first_opcodes = "\x80(c]})NIJKLM";  // PROTO, or a value in protocols 0 and 1
  check(is_zip(bytes) || first_opcodes.find(bytes[0]) != std::string_view::npos,
        "[pth] {}: expected a safetensors or PyTorch file, got neither", name);
}

constexpr int legacy_header_pickles = 3;  // magic number, protocol version, system info

TensorFile parse_legacy_format(std::string_view bytes, const std::string& name) {
  std::string_view rest = bytes;
  for (int i = 0; i < legacy_header_pickles; ++i) {
    const Pickle header = next_pickle(rest, name);
    check_calls(header, name);
    const PickleValue& root = header.at(header.root);
    check(i != 0 || is_legacy_magic(root), "[pth] {}: expected a file of torch.save, got another pickle",
          name);
    for (std::size_t item = 0; i == 2 && item + 1 < root.items.size(); item += 2)
      check(
          header.at(root.items[item]).text != "little_endian" || header.at(root.items[item + 1]).integer == 1,
          "[pth] {}: expected little-endian numbers, got a file written on a big-endian machine", name);
  }
  const Pickle pickle = next_pickle(rest, name);
  check_calls(pickle, name);
  const Pickle keys = next_pickle(rest, name);
  check_calls(keys, name);
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
  TensorFile file = reader.read(storages);
  file.metadata["format"] = "pth legacy";
  return file;
}

}  // namespace

TensorFile parse_pth(std::string_view bytes, const std::string& name) {
  check_format(bytes, name);
  return is_zip(bytes) ? parse_zip_format(bytes, name) : parse_legacy_format(bytes, name);
}

TensorFile read_pth(const std::filesystem::path& path) {
  constexpr std::uint64_t no_limit = std::numeric_limits<std::int64_t>::max();
  return parse_pth(read_file("pth", path, no_limit), path.string());
}

std::vector<PthName> pth_names(std::string_view bytes, const std::string& name) {
  check_format(bytes, name);
  std::vector<PthName> names;
  std::map<std::string, std::size_t> indices;
  const auto add = [&](const Pickle& pickle) {
    for (const PickleName& used : pickle.names) {
      const auto [index, added] = indices.try_emplace(used.name, names.size());
      if (added) names.push_back({.name = used.name, .understood = is_supported_name(used.name)});
      names[index->second].called |= used.called;
    }
  };
  if (is_zip(bytes)) {
    std::string unpacked;
    add(parse_pickle(unpack_entry(archive_entries(bytes, name).at("data.pkl"), unpacked, name), name));
    return names;
  }
  std::string_view rest = bytes;
  for (int i = 0; i < legacy_header_pickles + 2; ++i) {
    const Pickle pickle = next_pickle(rest, name);
    add(pickle);
    if (i == 0 && !is_legacy_magic(pickle.at(pickle.root)))
      break;  // not a torch.save: nothing else is known to follow
  }
  return names;
}

}  // namespace tandem
