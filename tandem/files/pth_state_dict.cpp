#include "tandem/files/pth_state_dict.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <set>

#include "tandem/core/check.h"
#include "tandem/text/utf8.h"

namespace tandem {
namespace {

using Kind = PickleKind;

constexpr std::uint64_t budget_base = 64 << 20, budget_factor = 16;

// The names a pickle may call. None is called: their meaning is implemented here, or can be ignored.
constexpr std::string_view supported_calls[] = {
    "collections.OrderedDict",
    "collections.OrderedDict.__setitem__",
    "collections.OrderedDict.__setstate__",  // a state dict's _metadata
    "collections.Counter",
    "collections.Counter.__setitem__",
    "collections.defaultdict",
    "collections.defaultdict.__setitem__",
    "torch._utils._rebuild_tensor",
    "torch._utils._rebuild_tensor_v2",
    "torch._utils._rebuild_parameter",
    "torch._utils._rebuild_parameter_with_state",
    "torch.Size",
    "torch.device",
    "_codecs.encode",
    "builtins.set",
    "builtins.frozenset",
    "builtins.list",
    "builtins.dict",
    "builtins.tuple",
    "builtins.bytearray",
    "__builtin__.set",
    "__builtin__.frozenset",
    "__builtin__.list",
    "__builtin__.dict",
    "__builtin__.tuple",
    "__builtin__.bytearray",
};

// Values that a pickle may name; they are not called.
constexpr std::string_view supported_values[] = {
    "torch.float32",
    "torch.float64",
    "torch.float16",
    "torch.bfloat16",
    "torch.uint8",
    "torch.int8",
    "torch.int16",
    "torch.int32",
    "torch.int64",
    "torch.bool",
    "torch.complex64",
    "torch.complex128",
    "torch.strided",
    // Storages that are refused with a text of their own.
    "torch.ComplexFloatStorage",
    "torch.ComplexDoubleStorage",
    "torch.QInt8Storage",
    "torch.QUInt8Storage",
    "torch.QInt32Storage",
    "torch.QUInt4x2Storage",
    "torch.QUInt2x4Storage",
};

}  // namespace

bool is_supported_name(std::string_view name) {
  return std::ranges::find(supported_calls, name) != std::end(supported_calls) ||
         std::ranges::find(supported_values, name) != std::end(supported_values) ||
         find_storage_type(name) != nullptr;
}

void check_names(const Pickle& pickle, const std::string& name) {
  std::vector<std::string> called, imported;
  for (const PickleName& used : pickle.names)
    if (!is_supported_name(used.name)) (used.called ? called : imported).push_back(used.name);
  std::vector<std::string>& refused = called.empty() ? imported : called;
  if (refused.size() > 5) {
    refused.resize(5);
    refused.emplace_back("others");
  }
  check(refused.empty(), "[pth] {}: expected weights only, got a pickle that {} {}; nothing was executed",
        name, called.empty() ? "imports" : "calls", fmt::join(refused, ", "));
}

StateDictReader::StateDictReader(const Pickle& pickle, std::uint64_t file_size, const std::string& name)
    : pickle_(pickle), name_(name), budget_(budget_base + budget_factor * file_size) {}

void StateDictReader::require(bool condition, const char* what) const {
  check(condition, "[pth] {}: damaged: {}", name_, what);
}

std::vector<StorageId> StateDictReader::storage_ids() const {
  std::vector<StorageId> ids;
  std::set<std::string_view> seen;
  for (const PickleValue& value : pickle_.values)
    if (value.kind == Kind::persistent)
      if (const StorageId id = read_storage_id(value); seen.insert(id.key).second) ids.push_back(id);
  return ids;
}

StateDict StateDictReader::read(const StorageData& storages) {
  StateDict found;
  std::vector<std::string> ignored;
  const Entries entries = find_state_dict(ignored);
  for (const auto& [key, value] : entries)
    if (is_tensor(value))
      found.tensors.push_back(read_tensor(value, key, storages));
    else
      ignored.push_back(key);
  check(!found.tensors.empty(), "[pth] {}: expected a state dict, got a pickle without tensors", name_);
  found.ignored = fmt::format("{}", fmt::join(ignored, ", "));
  return found;
}

std::int64_t StateDictReader::read_count(Id id, const char* what) const {
  const PickleValue& value = at(id);
  require(value.kind == Kind::integer && value.integer >= 0, what);
  return value.integer;
}

bool StateDictReader::is_dict(Id id) const {
  const PickleValue& value = at(id);
  return value.kind == Kind::dict ||
         (value.kind == Kind::call && pickle_.name_of(value) == "collections.OrderedDict");
}

StateDictReader::Entries StateDictReader::entries_of(Id id) const {
  Entries entries;
  std::map<std::string_view, std::size_t> indices;
  const auto put = [&](Id key, Id value) {
    if (at(key).kind != Kind::text) return;
    const auto [index, added] = indices.try_emplace(at(key).text, entries.size());
    if (added)
      entries.emplace_back(one_line(at(key).text), value);
    else
      entries[index->second].second = value;
  };
  const PickleValue& dict = at(id);
  // Python 2 passes the pairs as an argument of OrderedDict.
  if (dict.kind == Kind::call && !at(dict.arguments).items.empty())
    for (const Id pair : at(at(dict.arguments).items[0]).items) {
      require(at(pair).items.size() == 2, "an OrderedDict without pairs");
      put(at(pair).items[0], at(pair).items[1]);
    }
  for (std::size_t i = 0; i + 1 < dict.items.size(); i += 2) put(dict.items[i], dict.items[i + 1]);
  return entries;
}

StateDictReader::Entries StateDictReader::find_state_dict(std::vector<std::string>& ignored) const {
  constexpr int max_levels = 3;
  Id dict = pickle_.root;
  for (int level = 0;; ++level) {
    check(is_dict(dict), "[pth] {}: expected a state dict (a dictionary of tensors), got another object",
          name_);
    Entries entries = entries_of(dict);
    if (level == max_levels || std::ranges::any_of(entries, [&](auto& e) { return is_tensor(e.second); }))
      return entries;
    const Entries::value_type* inner = nullptr;
    for (const char* key : {"state_dict", "model_state_dict", "model", "net"})
      for (const auto& entry : entries)
        if (!inner && entry.first == key && is_dict(entry.second)) inner = &entry;
    if (!inner) return entries;
    for (const auto& entry : entries)
      if (&entry != inner) ignored.push_back(entry.first);
    dict = inner->second;
  }
}

std::optional<StateDictReader::Id> StateDictReader::rebuild_call(Id id) const {
  constexpr int max_wrappers = 4;
  for (int i = 0; i < max_wrappers && at(id).kind == Kind::call; ++i) {
    const std::string_view name = pickle_.name_of(at(id));
    if (name == "torch._utils._rebuild_tensor" || name == "torch._utils._rebuild_tensor_v2") return id;
    if (!name.starts_with("torch._utils._rebuild_parameter")) break;
    const PickleValue& arguments = at(at(id).arguments);
    require(!arguments.items.empty(), "a parameter without its tensor");
    id = arguments.items[0];
  }
  return std::nullopt;
}

StorageId StateDictReader::read_storage_id(const PickleValue& persistent) const {
  const PickleValue& id = at(persistent.items[0]);
  require(id.kind == Kind::tuple && id.items.size() >= 5 && at(id.items[0]).text == "storage" &&
              at(id.items[1]).kind == Kind::global && at(id.items[2]).kind == Kind::text,
          "a persistent id that is not a storage");
  require(id.items.size() < 6 || at(id.items[5]).kind == Kind::none,
          "a storage view in the format before PyTorch 0.4");
  const std::string_view type_name = pickle_.name_of(at(id.items[1]));
  const StorageType* type = find_storage_type(type_name);
  check(type != nullptr, "[pth] {}: expected a storage of a supported dtype, got {}", name_, type_name);
  const auto numel = static_cast<std::uint64_t>(read_count(id.items[4], "a storage without a size"));
  require(numel <= std::numeric_limits<std::uint64_t>::max() / type->element_size,
          "a storage of absurd size");
  return {type, at(id.items[2]).text, numel * type->element_size};
}

Dims StateDictReader::read_dims(Id id, const std::string& tensor, const char* what) const {
  const PickleValue& value = at(id);
  check(value.kind == Kind::tuple && value.items.size() <= max_rank,
        "[pth] {}: tensor '{}': expected a {} of at most {} numbers", name_, tensor, what, max_rank);
  Dims result = Dims::filled(static_cast<int>(value.items.size()), 0);
  for (int i = 0; i < result.rank(); ++i)
    result[i] = read_count(value.items[static_cast<std::size_t>(i)], what);
  return result;
}

StorageView StateDictReader::read_view(const PickleValue& arguments, const std::string& tensor,
                                       std::uint64_t numel) const {
  const Dims sizes = read_dims(arguments.items[2], tensor, "size");
  StorageView view{.strides = read_dims(arguments.items[3], tensor, "stride"),
                   .offset = read_count(arguments.items[1], "a tensor without an offset")};
  try {
    view.shape = Shape(sizes);
  } catch (const Error&) {
    fail("[pth] {}: tensor '{}': the product of its sizes {} is too large", name_, tensor, sizes.to_string());
  }
  check(view.strides.rank() == sizes.rank(), "[pth] {}: tensor '{}': expected a stride for each size", name_,
        tensor);
  if (view.shape.numel() == 0) return view;
  // The index of the last element; every step is checked against overflow.
  std::uint64_t last = static_cast<std::uint64_t>(view.offset);
  bool inside = last < numel;
  for (int i = 0; inside && i < sizes.rank(); ++i) {
    const auto steps = static_cast<std::uint64_t>(sizes[i] - 1);
    const auto stride = static_cast<std::uint64_t>(view.strides[i]);
    inside = steps == 0 || stride <= (numel - 1 - last) / steps;
    if (inside) last += steps * stride;
  }
  check(inside, "[pth] {}: tensor '{}' of size {}, stride {} and offset {} exceeds its storage of {}", name_,
        tensor, sizes.to_string(), view.strides.to_string(), view.offset, numel);
  return view;
}

TensorSource StateDictReader::read_tensor(Id id, const std::string& tensor, const StorageData& storages) {
  const PickleValue& arguments = at(at(*rebuild_call(id)).arguments);
  require(arguments.items.size() >= 4 && at(arguments.items[0]).kind == Kind::persistent,
          "a tensor without storage, offset, size and stride");
  const StorageId storage = read_storage_id(at(arguments.items[0]));
  const auto found = storages.find(storage.key);
  check(found != storages.end(), "[pth] {}: tensor '{}': its storage '{}' is not in the file", name_, tensor,
        one_line(storage.key));
  check(found->second.size() == storage.bytes,
        "[pth] {}: tensor '{}': expected a storage of {} bytes, got {}", name_, tensor, storage.bytes,
        found->second.size());
  const StorageView view = read_view(arguments, tensor, storage.bytes / storage.type->element_size);
  const auto numel = static_cast<std::uint64_t>(view.shape.numel());
  check(numel <= budget_ / size_of(storage.type->dtype),
        "[pth] {}: tensor '{}' of shape {} makes the tensors too large in total for a file of this size",
        name_, tensor, view.shape.to_string());
  budget_ -= numel * size_of(storage.type->dtype);
  return {tensor, storage.type, view, found->second};
}

}  // namespace tandem
