#include "tandem/files/pth.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <map>
#include <optional>
#include <set>

#include "tandem/core/check.h"
#include "tandem/files/read_file.h"
#include "tandem/files/unpickle.h"
#include "tandem/files/zip.h"
#include "tandem/report/text.h"

namespace tandem {
namespace {

static_assert(std::endian::native == std::endian::little, "storages are copied as they stand");

using Kind = PickleKind;
using Id = std::uint32_t;

// All that may be called; none is. What they mean is in this file, or nothing is lost by ignoring it.
constexpr std::string_view understood_calls[] = {
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

enum class Element { f32, f64, bf16, f16, u8, i8, i16, i32, i64 };

struct StorageType {
  std::string_view name;
  Element element;
  std::uint64_t size;
  DType dtype;  // what it becomes
};
constexpr StorageType storage_types[] = {
    {"torch.FloatStorage", Element::f32, 4, DType::f32},
    {"torch.DoubleStorage", Element::f64, 8, DType::f64},
    {"torch.BFloat16Storage", Element::bf16, 2, DType::bf16},
    {"torch.HalfStorage", Element::f16, 2, DType::f32},
    {"torch.ByteStorage", Element::u8, 1, DType::u8},
    {"torch.BoolStorage", Element::u8, 1, DType::u8},
    {"torch.CharStorage", Element::i8, 1, DType::i32},
    {"torch.ShortStorage", Element::i16, 2, DType::i32},
    {"torch.IntStorage", Element::i32, 4, DType::i32},
    {"torch.LongStorage", Element::i64, 8, DType::i64},
    {"torch.UntypedStorage", Element::u8, 1, DType::u8},
    {"torch.storage.UntypedStorage", Element::u8, 1, DType::u8},
};

bool is_understood(std::string_view name) {
  return std::ranges::find(understood_calls, name) != std::end(understood_calls) ||
         std::ranges::find(storage_types, name, &StorageType::name) != std::end(storage_types);
}

void refuse_other_calls(const Pickle& pickle, const std::string& name) {
  std::vector<std::string> refused;
  for (const PickleName& one : pickle.names)
    if (one.called && !is_understood(one.name)) refused.push_back(one.name);
  if (refused.size() > 5) {
    refused.resize(5);
    refused.emplace_back("others");
  }
  check(refused.empty(), "[pth] {}: expected weights only, got a pickle that calls {}; nothing was executed",
        name, fmt::join(refused, ", "));
}

float half_to_float(std::uint16_t half) {
  const std::uint32_t sign = std::uint32_t{half} >> 15 << 31;
  const std::uint32_t exponent = half >> 10 & 0x1F, fraction = half & 0x3FF;
  if (exponent == 0) {  // a multiple of 2⁻²⁴
    const float size = static_cast<float>(fraction) * 0x1p-24f;
    return sign != 0 ? -size : size;
  }
  const std::uint32_t wide = exponent == 0x1F ? 0xFF : exponent + 112;
  return std::bit_cast<float>(sign | wide << 23 | fraction << 13);
}

// A tensor as a part of a storage, checked against it.
struct View {
  Shape shape;
  Dims strides;
  std::int64_t offset = 0;
};

// The elements in row-major order.
template <class From, class To, class Convert>
void copy_elements(const View& view, std::string_view data, To* to, Convert convert) {
  if constexpr (std::same_as<From, To>)
    if (view.strides == contiguous_strides(view.shape) && view.shape.numel() > 0) {
      std::memcpy(to, data.data() + static_cast<std::size_t>(view.offset) * sizeof(From),
                  static_cast<std::size_t>(view.shape.numel()) * sizeof(From));
      return;
    }
  const int rank = view.shape.rank();
  Dims index = Dims::filled(rank, 0);
  std::int64_t at = view.offset;
  for (std::int64_t i = 0; i < view.shape.numel(); ++i) {
    From value;
    std::memcpy(&value, data.data() + static_cast<std::size_t>(at) * sizeof(From), sizeof(From));
    to[i] = convert(value);
    for (int axis = rank - 1; axis >= 0; --axis) {
      at += view.strides[axis];
      if (++index[axis] < view.shape[axis]) break;
      at -= index[axis] * view.strides[axis];
      index[axis] = 0;
    }
  }
}

Tensor copy_view(const View& view, const StorageType& type, std::string_view data) {
  const Tensor tensor = Tensor::empty(view.shape, type.dtype);
  const auto same = [&]<class T>(T*) {
    copy_elements<T>(view, data, tensor.data<T>(), [](T value) { return value; });
  };
  const auto wider = [](auto value) { return std::int32_t{value}; };
  switch (type.element) {
    case Element::f32:
      same(static_cast<float*>(nullptr));
      break;
    case Element::f64:
      same(static_cast<double*>(nullptr));
      break;
    case Element::bf16:
      same(static_cast<BFloat16*>(nullptr));
      break;
    case Element::u8:
      same(static_cast<std::uint8_t*>(nullptr));
      break;
    case Element::i32:
      same(static_cast<std::int32_t*>(nullptr));
      break;
    case Element::i64:
      same(static_cast<std::int64_t*>(nullptr));
      break;
    case Element::f16:
      copy_elements<std::uint16_t>(view, data, tensor.data<float>(), half_to_float);
      break;
    case Element::i8:
      copy_elements<std::int8_t>(view, data, tensor.data<std::int32_t>(), wider);
      break;
    case Element::i16:
      copy_elements<std::int16_t>(view, data, tensor.data<std::int32_t>(), wider);
      break;
  }
  return tensor;
}

// What a persistent id of a storage says.
struct StorageId {
  const StorageType* type = nullptr;
  std::string_view key;
  std::uint64_t bytes = 0;
};

using Storages = std::map<std::string, std::string_view, std::less<>>;  // data by key

class StateDictReader {
 public:
  StateDictReader(const Pickle& pickle, std::uint64_t file_size, const std::string& name)
      : pickle_(pickle), name_(name), budget_(budget_base + budget_factor * file_size) {}

  // The storages the pickle speaks of, each once.
  std::vector<StorageId> storage_ids() const {
    std::vector<StorageId> ids;
    std::set<std::string_view> seen;
    for (const PickleValue& value : pickle_.values)
      if (value.kind == Kind::persistent)
        if (const StorageId id = storage_id(value); seen.insert(id.key).second) ids.push_back(id);
    return ids;
  }

  TensorFile read(const Storages& storages) {
    TensorFile file;
    std::vector<std::string> ignored;
    const Entries entries = find_state_dict(ignored);
    for (const auto& [key, value] : entries)
      if (is_tensor(value))
        file.tensors.push_back({key, read_tensor(value, key, storages)});
      else
        ignored.push_back(key);
    check(!file.tensors.empty(), "[pth] {}: expected a state dict, got a pickle without tensors in one",
          name_);
    constexpr std::string_view parallel = "module.";
    if (std::ranges::all_of(file.tensors, [&](const NamedTensor& t) { return t.name.starts_with(parallel); }))
      for (NamedTensor& tensor : file.tensors) tensor.name.erase(0, parallel.size());
    if (!ignored.empty()) file.metadata["ignored"] = fmt::format("{}", fmt::join(ignored, ", "));
    return file;
  }

 private:
  static constexpr std::uint64_t budget_base = 64 << 20, budget_factor = 16;
  using Entries = std::vector<std::pair<std::string, Id>>;

  const PickleValue& at(Id id) const { return pickle_.at(id); }
  void need(bool fine, const char* what) const { check(fine, "[pth] {}: damaged: {}", name_, what); }

  // A non-negative integer.
  std::int64_t count(Id id, const char* what) const {
    const PickleValue& value = at(id);
    need(value.kind == Kind::integer && value.integer >= 0, what);
    return value.integer;
  }

  bool is_dict(Id id) const {
    const PickleValue& value = at(id);
    return value.kind == Kind::dict ||
           (value.kind == Kind::call && pickle_.name_of(value) == "collections.OrderedDict");
  }

  // Keys that are text, with their last value, in the order they came in.
  Entries entries_of(Id id) const {
    Entries entries;
    std::map<std::string_view, std::size_t> places;
    const auto put = [&](Id key, Id value) {
      if (at(key).kind != Kind::text) return;
      const auto [place, added] = places.try_emplace(at(key).text, entries.size());
      if (added)
        entries.emplace_back(one_line(at(key).text), value);
      else
        entries[place->second].second = value;
    };
    const PickleValue& dict = at(id);
    // Python 2 gave OrderedDict its pairs as an argument.
    if (dict.kind == Kind::call && !at(dict.arguments).items.empty())
      for (const Id pair : at(at(dict.arguments).items[0]).items) {
        need(at(pair).items.size() == 2, "an OrderedDict made of no pairs");
        put(at(pair).items[0], at(pair).items[1]);
      }
    for (std::size_t i = 0; i + 1 < dict.items.size(); i += 2) put(dict.items[i], dict.items[i + 1]);
    return entries;
  }

  // The entries of the dictionary that holds the tensors; what stands beside it on the way is ignored.
  Entries find_state_dict(std::vector<std::string>& ignored) const {
    constexpr int most_levels = 3;
    Id dict = pickle_.root;
    for (int level = 0;; ++level) {
      check(is_dict(dict), "[pth] {}: expected a state dict (a dictionary of tensors), got another object",
            name_);
      Entries entries = entries_of(dict);
      if (level == most_levels || std::ranges::any_of(entries, [&](auto& e) { return is_tensor(e.second); }))
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

  // The call of _rebuild_tensor below a parameter's, if there is one.
  std::optional<Id> rebuild_call(Id id) const {
    constexpr int most_wrappers = 4;
    for (int i = 0; i < most_wrappers && at(id).kind == Kind::call; ++i) {
      const std::string_view name = pickle_.name_of(at(id));
      if (name == "torch._utils._rebuild_tensor" || name == "torch._utils._rebuild_tensor_v2") return id;
      if (!name.starts_with("torch._utils._rebuild_parameter")) break;
      const PickleValue& arguments = at(at(id).arguments);
      need(!arguments.items.empty(), "a parameter without its tensor");
      id = arguments.items[0];
    }
    return std::nullopt;
  }
  bool is_tensor(Id id) const { return rebuild_call(id).has_value(); }

  StorageId storage_id(const PickleValue& persistent) const {
    const PickleValue& id = at(persistent.items[0]);
    need(id.kind == Kind::tuple && id.items.size() >= 5 && at(id.items[0]).text == "storage" &&
             at(id.items[1]).kind == Kind::global && at(id.items[2]).kind == Kind::text,
         "a persistent id that is no storage's");
    need(id.items.size() < 6 || at(id.items[5]).kind == Kind::none,
         "a view of a storage as PyTorch wrote it before 0.4");
    const std::string_view type_name = pickle_.name_of(at(id.items[1]));
    const auto* type = std::ranges::find(storage_types, type_name, &StorageType::name);
    check(type != std::end(storage_types), "[pth] {}: expected storages of numbers Tandem knows, got a {}",
          name_, type_name);
    const auto numel = static_cast<std::uint64_t>(count(id.items[4], "a storage without a size"));
    need(numel <= std::numeric_limits<std::uint64_t>::max() / type->size, "a storage of absurd size");
    return {type, at(id.items[2]).text, numel * type->size};
  }

  Dims dims(Id id, const std::string& tensor, const char* what) const {
    const PickleValue& value = at(id);
    check(value.kind == Kind::tuple && value.items.size() <= max_rank,
          "[pth] {}: tensor '{}': expected a {} of at most {} numbers", name_, tensor, what, max_rank);
    Dims result = Dims::filled(static_cast<int>(value.items.size()), 0);
    for (int i = 0; i < result.rank(); ++i) result[i] = count(value.items[static_cast<std::size_t>(i)], what);
    return result;
  }

  View read_view(const PickleValue& arguments, const std::string& tensor, std::uint64_t numel) const {
    const Dims sizes = dims(arguments.items[2], tensor, "size");
    View view{.strides = dims(arguments.items[3], tensor, "stride"),
              .offset = count(arguments.items[1], "a tensor without an offset")};
    try {
      view.shape = Shape(sizes);
    } catch (const Error&) {
      fail("[pth] {}: tensor '{}': the product of its sizes {} is too large", name_, tensor,
           sizes.to_string());
    }
    check(view.strides.rank() == sizes.rank(), "[pth] {}: tensor '{}': expected a stride for each size",
          name_, tensor);
    if (view.shape.numel() == 0) return view;
    // The last element's place, each step checked so that nothing overflows.
    std::uint64_t last = static_cast<std::uint64_t>(view.offset);
    bool inside = last < numel;
    for (int i = 0; inside && i < sizes.rank(); ++i) {
      const auto steps = static_cast<std::uint64_t>(sizes[i] - 1);
      const auto stride = static_cast<std::uint64_t>(view.strides[i]);
      inside = steps == 0 || stride <= (numel - 1 - last) / steps;
      if (inside) last += steps * stride;
    }
    check(inside, "[pth] {}: tensor '{}' of size {}, stride {} and offset {} leaves its storage of {}", name_,
          tensor, sizes.to_string(), view.strides.to_string(), view.offset, numel);
    return view;
  }

  Tensor read_tensor(Id id, const std::string& tensor, const Storages& storages) {
    const PickleValue& arguments = at(at(*rebuild_call(id)).arguments);
    need(arguments.items.size() >= 4 && at(arguments.items[0]).kind == Kind::persistent,
         "a tensor without storage, offset, size and stride");
    const StorageId storage = storage_id(at(arguments.items[0]));
    const auto found = storages.find(storage.key);
    check(found != storages.end(), "[pth] {}: tensor '{}': its storage '{}' is not in the file", name_,
          tensor, one_line(storage.key));
    check(found->second.size() == storage.bytes,
          "[pth] {}: tensor '{}': expected a storage of {} bytes, got {}", name_, tensor, storage.bytes,
          found->second.size());
    const View view = read_view(arguments, tensor, storage.bytes / storage.type->size);
    const auto numel = static_cast<std::uint64_t>(view.shape.numel());
    check(numel <= budget_ / size_of(storage.type->dtype),
          "[pth] {}: tensor '{}' of shape {} makes the tensors together too large for a file of this size",
          name_, tensor, view.shape.to_string());
    budget_ -= numel * size_of(storage.type->dtype);
    return copy_view(view, *storage.type, found->second);
  }

  const Pickle& pickle_;
  const std::string& name_;
  std::uint64_t budget_;  // bytes that tensors may still take
};

// The entries of an archive below its one folder, by their names there.
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
  check(!folder.empty(), "[pth] {}: a zip archive, but not of PyTorch: it has no data.pkl", name);
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

TensorFile parse_zip_form(std::string_view bytes, const std::string& name) {
  const auto entries = archive_entries(bytes, name);
  std::string unpacked;
  if (const auto order = entries.find("byteorder"); order != entries.end())
    check(unpack_entry(order->second, unpacked, name) == "little",
          "[pth] {}: expected little-endian numbers, got a file written on a big-endian machine", name);
  std::deque<std::string> kept(1);
  const Pickle pickle = parse_pickle(unpack_entry(entries.at("data.pkl"), kept[0], name), name);
  refuse_other_calls(pickle, name);
  StateDictReader reader(pickle, bytes.size(), name);
  Storages storages;
  for (const StorageId& id : reader.storage_ids()) {
    const auto entry = entries.find(fmt::format("data/{}", id.key));
    if (entry == entries.end()) continue;  // the tensor that needs it says so
    storages.emplace(id.key, unpack_entry(entry->second, kept.emplace_back(), name));
  }
  TensorFile file = reader.read(storages);
  file.metadata["format"] = "pth zip";
  return file;
}

// 0x1950a86a20f9469cfc6c, as protocols from 2 on and below write it.
bool is_legacy_magic(const PickleValue& value) {
  return value.kind == Kind::big_integer &&
         (value.text == std::string_view("\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19", 10) ||
          value.text == "119547037146038801333356");
}

// The next of the pickles that stand one after the other.
Pickle take_pickle(std::string_view& rest, const std::string& name) {
  Pickle pickle = parse_pickle(rest, name);
  rest.remove_prefix(pickle.size);
  return pickle;
}

// A text or a picture deserves a better answer than which opcode does not fit.
void check_begin(std::string_view bytes, const std::string& name) {
  check(!bytes.empty(), "[pth] {}: the file is empty", name);
  constexpr std::string_view first_opcodes =
      "\x80(c]})NIJKLM";  // of PROTO, or of a value in protocols 0 and 1
  check(is_zip(bytes) || first_opcodes.find(bytes[0]) != std::string_view::npos,
        "[pth] {}: expected weights as safetensors or PyTorch has them, got neither", name);
}

constexpr int legacy_header_pickles = 3;  // magic number, protocol version, facts of the machine

TensorFile parse_legacy_form(std::string_view bytes, const std::string& name) {
  std::string_view rest = bytes;
  for (int i = 0; i < legacy_header_pickles; ++i) {
    const Pickle header = take_pickle(rest, name);
    refuse_other_calls(header, name);
    const PickleValue& root = header.at(header.root);
    check(i != 0 || is_legacy_magic(root), "[pth] {}: a pickle, but not of PyTorch's torch.save", name);
    for (std::size_t item = 0; i == 2 && item + 1 < root.items.size(); item += 2)
      check(
          header.at(root.items[item]).text != "little_endian" || header.at(root.items[item + 1]).integer == 1,
          "[pth] {}: expected little-endian numbers, got a file written on a big-endian machine", name);
  }
  const Pickle pickle = take_pickle(rest, name);
  refuse_other_calls(pickle, name);
  const Pickle keys = take_pickle(rest, name);
  refuse_other_calls(keys, name);
  StateDictReader reader(pickle, bytes.size(), name);
  std::map<std::string_view, const StorageType*> types;
  for (const StorageId& id : reader.storage_ids()) types.emplace(id.key, id.type);

  Storages storages;
  for (const Id id : keys.at(keys.root).items) {
    const std::string_view key = keys.at(id).text;
    const auto type = types.find(key);
    check(type != types.end(), "[pth] {}: damaged: no tensor has the storage '{}'", name, one_line(key));
    std::uint64_t numel = 0;
    check(rest.size() >= sizeof numel, "[pth] {}: the file is cut short", name);
    std::memcpy(&numel, rest.data(), sizeof numel);
    rest.remove_prefix(sizeof numel);
    check(numel <= rest.size() / type->second->size, "[pth] {}: the file is cut short in storage '{}'", name,
          one_line(key));
    storages.emplace(key, rest.substr(0, numel * type->second->size));
    rest.remove_prefix(numel * type->second->size);
  }
  TensorFile file = reader.read(storages);
  file.metadata["format"] = "pth legacy";
  return file;
}

}  // namespace

TensorFile parse_pth(std::string_view bytes, const std::string& name) {
  check_begin(bytes, name);
  return is_zip(bytes) ? parse_zip_form(bytes, name) : parse_legacy_form(bytes, name);
}

TensorFile read_pth(const std::filesystem::path& path) {
  constexpr std::uint64_t no_limit = std::numeric_limits<std::int64_t>::max();
  return parse_pth(read_file("pth", path, no_limit), path.string());
}

std::vector<PthName> pth_names(std::string_view bytes, const std::string& name) {
  check_begin(bytes, name);
  std::vector<PthName> names;
  std::map<std::string, std::size_t> places;
  const auto add = [&](const Pickle& pickle) {
    for (const PickleName& one : pickle.names) {
      const auto [place, added] = places.try_emplace(one.name, names.size());
      if (added) names.push_back({.name = one.name, .understood = is_understood(one.name)});
      names[place->second].called |= one.called;
    }
  };
  if (is_zip(bytes)) {
    std::string unpacked;
    add(parse_pickle(unpack_entry(archive_entries(bytes, name).at("data.pkl"), unpacked, name), name));
    return names;
  }
  std::string_view rest = bytes;
  for (int i = 0; i < legacy_header_pickles + 2; ++i) {
    const Pickle pickle = take_pickle(rest, name);
    add(pickle);
    if (i == 0 && !is_legacy_magic(pickle.at(pickle.root))) break;  // the storages follow no pickle
  }
  return names;
}

}  // namespace tandem
