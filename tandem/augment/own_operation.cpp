#include "tandem/augment/own_operation.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "tandem/augment/augment_plugin.h"
#include "tandem/augment/own_operation_table.h"
#include "tandem/augment/transform.h"
#include "tandem/core/check.h"

namespace tandem {
namespace {

constexpr std::size_t max_name = 64;
constexpr const char* argument_names[] = {"", "MIN MAX", "MIN MAX MIN_2 MAX_2"};

std::deque<detail::OwnOperationRow>& table() {
  static std::deque<detail::OwnOperationRow> rows;
  return rows;
}

bool is_word(std::string_view name) {
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  return !name.empty() && name.size() <= max_name && is_letter(name[0]) &&
         std::ranges::all_of(name,
                             [&](char c) { return is_letter(c) || c == '_' || (c >= '0' && c <= '9'); });
}

}  // namespace

namespace detail {

const std::deque<OwnOperationRow>& own_operations() {
  return table();
}

const OwnOperationRow* find_own_operation(std::string_view name) {
  const auto found =
      std::ranges::find_if(table(), [&](const OwnOperationRow& row) { return row.operation.name == name; });
  return found == table().end() ? nullptr : &*found;
}

void add_own_operation(AugmentOperation operation, const std::filesystem::path& library) {
  check(is_word(operation.name),
        "[augment] expected a name of up to {} letters, digits and underscores for an operation, "
        "got '{}'",
        max_name, operation.name);
  const std::vector<TransformOperation> all = transform_operations();
  check(operation.name != "none" && operation.name != "digits" && operation.name != "photo" &&
            std::ranges::find(all, operation.name, &TransformOperation::name) == all.end(),
        "[augment] expected a new name for an operation, got '{}', which is taken", operation.name);
  check(operation.arguments >= 0 && operation.arguments <= 2,
        "[augment] {}: expected 0 to 2 arguments, got {}", operation.name, operation.arguments);
  check(operation.apply != nullptr, "[augment] {}: expected a function, got none", operation.name);
  check(table().size() < max_own_operations,
        "[augment] expected at most {} operations of your own, got {} as well", max_own_operations,
        operation.name);
  const char* const names = argument_names[operation.arguments];
  table().push_back({std::move(operation), library.string(), names});
}

void remove_own_operations() {
  table().clear();
}

void run_own_operation(const SampledStep& step, const ImageSize& size, const RandomKey& key,
                       const std::uint8_t* in, std::uint8_t* out) {
  expect(step.operation >= 0 && step.operation < std::ssize(table()));
  AugmentCall call{.size = size, .in = in, .out = out};
  std::ranges::copy(step.arguments, call.arguments);
  for (std::uint32_t block = 0; block < 2; ++block)
    std::ranges::copy(key.block(1 + block).word, call.random + 4 * block);
  table()[static_cast<std::size_t>(step.operation)].operation.apply(call);
}

// One line per operation: its name, a tab and its library.
std::string describe_own_operations() {
  std::string text;
  for (const OwnOperationRow& row : table()) text += fmt::format("{}\t{}\n", row.operation.name, row.library);
  return text;
}

void attach_own_operations(std::string_view description) {
  for (std::size_t i = 0; !description.empty(); ++i) {
    const std::string_view line = description.substr(0, description.find('\n'));
    const std::size_t tab = line.find('\t');
    expect(tab != line.npos);
    const std::string_view name = line.substr(0, tab), library = line.substr(tab + 1);
    if (i == table().size() && !library.empty()) load_augmentation(std::string(library));
    check(i < table().size() && table()[i].operation.name == name,
          "[augment] expected the program to call register_augmentation() for '{}' before "
          "run_worker_if_asked()",
          name);
    description.remove_prefix(std::min(line.size() + 1, description.size()));
  }
}

}  // namespace detail

void register_augmentation(AugmentOperation operation) {
  detail::add_own_operation(std::move(operation), {});
}

AugmentStep random_operation(std::string_view name, Bounds first, Bounds second) {
  const auto found = std::ranges::find_if(
      table(), [&](const detail::OwnOperationRow& row) { return row.operation.name == name; });
  check(found != table().end(), "[augment] expected the name of a registered operation, got '{}'", name);
  return {.kind = AugmentKind::custom,
          .operation = static_cast<std::int32_t>(found - table().begin()),
          .first = first,
          .second = second};
}

}  // namespace tandem
