#include "tandem/train/pretrained.h"

#include <fmt/format.h>

#include <string>

#include "tandem/core/check.h"
#include "tandem/data/dataset_registry.h"
#include "tandem/text/format_number.h"

namespace tandem {

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

}  // namespace tandem
