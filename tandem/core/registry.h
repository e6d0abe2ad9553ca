// Registry: the rows of a closed or growing list (models, data sets, optimizers, …) by name. Help texts,
// checks and error texts are made from it, so that adding a row is the only edit.
#pragma once

#include <algorithm>
#include <cstddef>
#include <deque>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tandem/core/did_you_mean.h"
#include "tandem/core/error.h"

namespace tandem {

/// Rows with a `name` and a `summary`, in the order in which they were added. Rows never move, so a pointer
/// to one stays valid as long as the registry exists. add() is not thread-safe; call it before other threads
/// start.
template <class Row>
class Registry {
 public:
  /// `what` names a row in error texts: "model".
  explicit Registry(std::string what, std::initializer_list<Row> rows = {}) : what_(std::move(what)) {
    for (const Row& row : rows) add(row);
  }

  /// Throws Error when the name is empty or taken.
  const Row& add(Row row) {
    if (std::string_view(row.name).empty()) throw Error("[" + what_ + "] expected a name, got ''");
    if (find(row.name))
      throw Error("[" + what_ + "] expected a new name, got '" + std::string(row.name) +
                  "', which is registered already");
    rows_.push_back(std::move(row));
    return rows_.back();
  }

  /// Null for a name that is not registered.
  const Row* find(std::string_view name) const {
    const auto found =
        std::find_if(rows_.begin(), rows_.end(), [&](const Row& row) { return row.name == name; });
    return found == rows_.end() ? nullptr : &*found;
  }

  /// Throws Error that lists the names and suggests a similar one.
  const Row& get(std::string_view name) const {
    const Row* const row = find(name);
    if (!row) throw Error("[" + what_ + "] " + unknown(name));
    return *row;
  }

  const std::deque<Row>& rows() const { return rows_; }

  std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (const Row& row : rows_) all.emplace_back(row.name);
    return all;
  }

  /// "expected one of mlp, cnn, resnet18, got 'resnet'; did you mean 'resnet18'?", for error texts.
  std::string unknown(std::string_view name) const {
    return "expected one of " + list() + ", got '" + std::string(name) + "'" + did_you_mean(name, names());
  }

  /// "mlp, cnn, resnet18"
  std::string list() const {
    std::string text;
    for (const Row& row : rows_) text += (text.empty() ? "" : ", ") + std::string(row.name);
    return text;
  }
  /// "mlp, cnn or resnet18"
  std::string choices() const {
    std::string text;
    for (std::size_t i = 0; i < rows_.size(); ++i)
      text += (i == 0 ? "" : i + 1 == rows_.size() ? " or " : ", ") + std::string(rows_[i].name);
    return text;
  }

 private:
  std::string what_;
  std::deque<Row> rows_;
};

}  // namespace tandem
