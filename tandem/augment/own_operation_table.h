// The table of the user's operations. A recipe refers to them by index, so every process must have the same
// ones in the same order.
#pragma once

#include <deque>
#include <filesystem>
#include <string>
#include <string_view>

#include "tandem/augment/arguments.h"
#include "tandem/augment/own_operation.h"
#include "tandem/core/philox.h"

namespace tandem::detail {

struct OwnOperationRow {
  AugmentOperation operation;
  std::string library;         // that it was loaded from; empty: registered by the program itself
  std::string argument_names;  // "MIN MAX"
};

// In the order of registration. Rows never move.
const std::deque<OwnOperationRow>& own_operations();
const OwnOperationRow* find_own_operation(std::string_view name);
void add_own_operation(AugmentOperation operation, const std::filesystem::path& library);
void remove_own_operations();  // all of them, for tests; recipes that refer to them are invalid afterwards

// Applies one; `key.operation` is its index in the recipe.
void run_own_operation(const SampledStep& step, const ImageSize& size, const RandomKey& key,
                       const std::uint8_t* in, std::uint8_t* out);

// What a worker process needs to have the same table, as text.
std::string describe_own_operations();
// In the worker: loads the plugins. Throws Error when the table differs.
void attach_own_operations(std::string_view description);

}  // namespace tandem::detail
