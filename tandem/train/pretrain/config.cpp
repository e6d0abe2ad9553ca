#include "tandem/train/pretrain/config.h"

#include <cmath>
#include <utility>
#include <variant>

#include "tandem/core/check.h"
#include "tandem/data/synthetic/scenes.h"
#include "tandem/nn/model_registry.h"

namespace tandem::detail {
namespace {

void check_range(const char* name, double value, double low, double high) {
  check(value >= low && value <= high, "[pretrain] expected {} from {} to {}, got {}", name, low, high,
        value);
}

template <class F>
void visit_fields(PretrainOptions& options, F&& f) {
  f("data", options.data);
  f("model", options.model);
  f("steps", options.steps);
  f("batch_size", options.batch_size);
  f("image_size", options.image_size);
  f("learning_rate", options.learning_rate);
  f("weight_decay", options.weight_decay);
  f("warmup", options.warmup);
  f("temperature", options.temperature);
  f("average", options.average);
  f("attributes", options.attributes);
  f("min_area", options.min_area);
  f("jitter", options.jitter);
  f("kinds", options.kinds);
  f("seed", options.seed);
  f("precision", options.precision);
}

TomlValue to_value(const std::string& value) {
  return value;
}
TomlValue to_value(std::int64_t value) {
  return value;
}
TomlValue to_value(std::uint64_t value) {
  return static_cast<std::int64_t>(value);
}
TomlValue to_value(double value) {
  return value;
}
TomlValue to_value(const std::vector<std::string>& value) {
  return TomlList(value.begin(), value.end());
}
TomlValue to_value(const std::optional<MatmulPrecision>& value) {
  return std::string(value ? name_of(*value) : "auto");
}

template <class T>
bool from_value(const TomlValue& from, T& to) {
  const T* const value = std::get_if<T>(&from);
  if (value) to = *value;
  return value != nullptr;
}
bool from_value(const TomlValue& from, std::uint64_t& to) {
  const std::int64_t* const value = std::get_if<std::int64_t>(&from);
  if (value) to = static_cast<std::uint64_t>(*value);
  return value != nullptr;
}
bool from_value(const TomlValue& from, std::vector<std::string>& to) {
  const TomlList* const list = std::get_if<TomlList>(&from);
  if (!list) return false;
  for (const TomlValue& value : *list)
    if (!from_value(value, to.emplace_back())) return false;
  return true;
}
bool from_value(const TomlValue& from, std::optional<MatmulPrecision>& to) {
  std::string name;
  if (!from_value(from, name)) return false;
  if (name != "auto") to = parse_precision(name);
  return true;
}

}  // namespace

void check_pretrain_options(const PretrainOptions& options) {
  constexpr std::int64_t max_steps = 100'000'000, max_batch = 1 << 15, max_side = 4096;
  const ModelRow& model = models().get(options.model);
  check(!model.flat_input, "[pretrain] expected a model with a backbone, such as resnet18 or cnn, got {}",
        model.name);
  check(options.steps >= 1 && options.steps <= max_steps, "[pretrain] expected 1 to {} steps, got {}",
        max_steps, options.steps);
  check(options.batch_size == 0 || (options.batch_size >= 2 && options.batch_size <= max_batch),
        "[pretrain] expected a batch of 2 to {} images, because each is compared with the others, got {}",
        max_batch, options.batch_size);
  check(options.image_size >= model.min_side && options.image_size <= max_side,
        "[pretrain] expected an image size of {} to {} for {}, got {}", model.min_side, max_side, model.name,
        options.image_size);
  check(std::isfinite(options.learning_rate) && options.learning_rate > 0,
        "[pretrain] expected a learning rate above 0, got {}", options.learning_rate);
  check_range("a weight decay", options.weight_decay, 0, 1);
  check_range("a warm-up", options.warmup, 0, 1);
  check_range("a temperature", options.temperature, 0.01, 100);
  check(options.average >= 0 && options.average < 1,
        "[pretrain] expected a decay of the average of 0 or more and less than 1, got {}", options.average);
  check_range("a weight of the attributes", options.attributes, 0, 1000);
  check_range("a smallest area", options.min_area, 0.01, 1);
  check_range("a jitter", options.jitter, 0, 1);
  check(options.kinds.empty() || options.data == "scenes",
        "[pretrain] expected no kinds of scenes for photographs, got {}", options.kinds.size());
  scene_shares(options.kinds);
  check(options.save_every >= 0, "[pretrain] expected 0 or more seconds between checkpoints, got {}",
        options.save_every);
  check(!options.workers || (*options.workers >= 0 && *options.workers <= 1024),
        "[pretrain] expected 0 to 1024 workers, got {}", options.workers.value_or(0));
}

TomlTable pretrain_config(const PretrainOptions& options) {
  TomlTable table{.name = "config.toml", .entries = {}};
  PretrainOptions copy = options;
  visit_fields(copy, [&](const char* key, const auto& value) {
    table.entries.push_back({.key = key, .value = to_value(value)});
  });
  return table;
}

PretrainOptions read_pretrain_config(const TomlTable& config) {
  PretrainOptions options;
  visit_fields(options, [&](const char* key, auto& value) {
    const TomlEntry* const entry = config.find(key);
    check(entry != nullptr, "[pretrain] {}: not the configuration of tandem pretrain: it has no {}",
          config.name, key);
    check(from_value(entry->value, value), "[pretrain] {}: not a valid value of {}", config.where(*entry),
          key);
  });
  return options;
}

}  // namespace tandem::detail
