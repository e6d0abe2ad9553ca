#include "tandem/train/pretrained.h"

#include <fmt/format.h>

#include <string>

#include "tandem/core/check.h"
#include "tandem/data/dataset_registry.h"
#include "tandem/files/shipped_weights.h"
#include "tandem/text/format_number.h"

namespace tandem {
namespace {

// Why the ImageNet weights cannot be fetched; empty if they can.
std::string fetch_problem(const TrainOptions& options, const WeightsFetcher& fetch) {
  try {
    fetch(options.model);
    return {};
  } catch (const Error& error) {
    if (gives_weights(options)) throw;
    return error.what();
  }
}

}  // namespace

bool gives_weights(const TrainOptions& options) {
  const std::string ending = std::filesystem::path(options.from).extension().string();
  const DatasetRow* const row = datasets().find(options.data);
  return (options.pretrained == "auto" || options.pretrained == "imagenet") && !options.from.empty() &&
         (ending == ".pth" || ending == ".pt" || row == nullptr || !row->source);
}

FetchOptions weights_fetch_options(const TrainOptions& options,
                                   const std::function<void(const std::string&)>& on_message) {
  return {.from = gives_weights(options) ? options.from : std::string(), .on_message = on_message};
}

bool has_any_weights(const std::string& model) {
  return has_weights(model) || shipped_weights().find(model) != nullptr;
}

ChosenWeights choose_weights(const TrainOptions& options, const WeightsFetcher& fetch) {
  if (options.pretrained != "auto") return {.name = options.pretrained};
  ChosenWeights chosen{.name = "none"};
  if (has_weights(options.model)) {
    chosen.problem = fetch_problem(options, fetch);
    if (chosen.problem.empty()) return {.name = "imagenet"};
  }
  try {
    find_shipped_weights(options.model);
    chosen.name = "scenes";
  } catch (const Error&) {  // not installed, or no such model
  }
  return chosen;
}

std::filesystem::path find_weights(const TrainOptions& options, const WeightsFetcher& fetch) {
  expect(options.pretrained != "auto");
  if (options.pretrained == "none") return {};
  if (options.pretrained == "imagenet") return fetch(options.model);
  if (options.pretrained == "scenes") return find_shipped_weights(options.model);
  return options.pretrained;
}

std::string describe_weights(const std::string& pretrained) {
  if (pretrained == "none") return "random weights";
  if (pretrained == "imagenet") return "ImageNet";
  if (pretrained == "scenes") return "scenes, which ship with Tandem";
  return pretrained;
}

std::string fallback_line(const std::string& model, const ChosenWeights& chosen,
                          std::int64_t training_images) {
  if (chosen.name != "none") return fmt::format("The ImageNet weights of {} could not be fetched", model);
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

}  // namespace tandem
