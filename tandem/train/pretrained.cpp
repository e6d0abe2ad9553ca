#include "tandem/train/pretrained.h"

#include <fmt/format.h>

#include <map>
#include <string>

#include "tandem/core/check.h"
#include "tandem/data/dataset_registry.h"
#include "tandem/files/weights.h"
#include "tandem/ops/cast.h"
#include "tandem/text/format_number.h"
#include "tandem/text/utf8.h"

namespace tandem {

namespace {

bool is_head(const std::string& name) {
  return name == "fc.weight" || name == "fc.bias";
}

// Only the number of classes may differ, not the number of features.
bool has_same_features(const Tensor& one, const Tensor& other) {
  return one.rank() == other.rank() && (one.rank() < 2 || one.size(1) == other.size(1));
}

}  // namespace

bool gives_weights(const TrainOptions& options) {
  const std::string ending = std::filesystem::path(options.from).extension().string();
  const DatasetRow* const row = datasets().find(options.data);
  return options.pretrained == "auto" && !options.from.empty() &&
         (ending == ".pth" || ending == ".pt" || row == nullptr || !row->source);
}

FetchOptions weights_fetch_options(const TrainOptions& options,
                                   const std::function<void(const std::string&)>& on_message) {
  return {.from = gives_weights(options) ? options.from : std::string(), .on_message = on_message};
}

StartingWeights find_starting_weights(const TrainOptions& options, const WeightsFetcher& fetch) {
  if (options.pretrained == "none") return {};
  if (options.pretrained != "auto") return {.file = options.pretrained};
  if (gives_weights(options)) return {.file = fetch(options.model)};
  try {
    return {.file = fetch(options.model)};
  } catch (const Error& error) {
    return {.problem = error.what()};
  }
}

std::string random_weights_line(const std::string& model, std::int64_t training_images) {
  constexpr std::int64_t few = 2000, many = 50000;
  const std::string count = format_count(training_images);
  const std::string meaning =
      training_images < few ? fmt::format(
                                  "{} images are too few to learn a {} from scratch: expect a much lower "
                                  "accuracy than with pretrained weights",
                                  count, model)
      : training_images < many
          ? fmt::format(
                "with {} images expect a lower accuracy, after more epochs, than with pretrained weights",
                count)
          : fmt::format("{} images can train it from scratch, in more epochs than with pretrained weights",
                        count);
  return fmt::format("Weights: random, because the ImageNet weights of {} could not be fetched; {}", model,
                     meaning);
}

void load_weights(Module& model, const std::filesystem::path& path, bool keep_head) {
  const TensorFile file = read_weights(path);
  check_finite(file, path.string());
  std::map<std::string, Tensor> own;
  for (const auto& [name, tensor] : model.state_dict()) own.emplace(name, tensor);
  NamedTensors state;
  for (const auto& [name, tensor] : file.tensors) {
    const auto found = own.find(name);
    Tensor value = tensor;
    if (found != own.end()) {
      const Tensor& present = found->second;
      if (is_head(name) && !keep_head && has_same_features(tensor, present))
        value = present;
      else if (tensor.shape() == present.shape() && is_floating(tensor.dtype()) &&
               is_floating(present.dtype()))
        value = cast(tensor, present.dtype());
      own.erase(found);
    }
    state.push_back({name, value});
  }
  for (const auto& [name, tensor] : own)
    if ((is_head(name) && !keep_head) || name.ends_with("num_batches_tracked"))
      state.push_back({name, tensor});
  try {
    model.load_state_dict(state);
  } catch (const Error& error) {
    fail("[train] {}: not the weights of this model: {}", one_line(path.string()), error.what());
  }
}

}  // namespace tandem
