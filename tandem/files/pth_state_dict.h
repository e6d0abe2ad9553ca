// Reads a state dict from an unpickled torch.save: finds the dictionary of tensors and the part of a storage
// that each tensor is.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tandem/files/pth_storage.h"
#include "tandem/files/unpickle.h"

namespace tandem {

// Whether the name is on the closed list of names that a pickle of weights may call or import.
bool is_supported_name(std::string_view name);

// Throws an Error that lists the names in the pickle that are not on the closed list: those that Python would
// call, else those that it would import.
void check_names(const Pickle& pickle, const std::string& name);

// The persistent id of a storage.
struct StorageId {
  const StorageType* type = nullptr;
  std::string_view key;
  std::uint64_t bytes = 0;
};

// A tensor of the state dict: a view of a storage.
struct TensorSource {
  std::string name;
  const StorageType* type = nullptr;
  StorageView view;
  std::string_view data;  // of the storage
};

struct StateDict {
  std::vector<TensorSource> tensors;
  std::string ignored;  // names of entries that are not tensors, with commas
};

using StorageData = std::map<std::string, std::string_view, std::less<>>;  // by key

class StateDictReader {
 public:
  // `pickle` and `name` must outlive the reader. `file_size` bounds the total size of the tensors.
  StateDictReader(const Pickle& pickle, std::uint64_t file_size, const std::string& name);

  // The storages that the pickle refers to, without duplicates.
  std::vector<StorageId> storage_ids() const;
  // Checked against the storages, which must outlive the result.
  StateDict read(const StorageData& storages);

 private:
  using Id = std::uint32_t;  // index into Pickle::values
  using Entries = std::vector<std::pair<std::string, Id>>;

  const PickleValue& at(Id id) const { return pickle_.at(id); }
  void require(bool condition, const char* what) const;

  std::int64_t read_count(Id id, const char* what) const;  // an integer of 0 or more
  bool is_dict(Id id) const;
  // Entries with text keys, in order of insertion; a repeated key keeps its last value.
  Entries entries_of(Id id) const;
  // The entries of the dictionary that holds the tensors. Adds the names of entries outside it to `ignored`.
  Entries find_state_dict(std::vector<std::string>& ignored) const;
  // The _rebuild_tensor call of a tensor or parameter; nothing for other values.
  std::optional<Id> rebuild_call(Id id) const;
  bool is_tensor(Id id) const { return rebuild_call(id).has_value(); }
  StorageId read_storage_id(const PickleValue& persistent) const;
  Dims read_dims(Id id, const std::string& tensor, const char* what) const;
  StorageView read_view(const PickleValue& arguments, const std::string& tensor, std::uint64_t numel) const;
  TensorSource read_tensor(Id id, const std::string& tensor, const StorageData& storages);

  const Pickle& pickle_;
  const std::string& name_;
  std::uint64_t budget_;  // bytes left for tensors
};

}  // namespace tandem
