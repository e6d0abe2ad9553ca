#include "tandem/train/explain/explain.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <span>

#include "tandem/augment/photo_arguments.h"
#include "tandem/core/check.h"
#include "tandem/core/did_you_mean.h"
#include "tandem/files/packed_path.h"
#include "tandem/image/resize_area.h"
#include "tandem/ops/matmul.h"
#include "tandem/ops/reduce.h"
#include "tandem/train/evaluation_mode.h"
#include "tandem/train/evaluator.h"
#include "tandem/train/predict_images.h"
#include "tandem/train/prediction_sheet.h"

namespace tandem {
namespace {

constexpr std::int64_t side_of_several = 384;
constexpr std::int64_t min_side = 160;  // smaller images are enlarged, so that the map over them is smooth

// Moves a map of a whole image to the part of it that the network's input shows.
void cover_input(HeatMap& heat, const ModelInfo& info, std::int64_t height, std::int64_t width) {
  if (!info.expects_photos()) return;
  const PhotoRecipe recipe = info.photo_recipe();
  const detail::PhotoArguments fit = detail::sample_photo(recipe, height, width, RandomKey{});
  const double x_scale = static_cast<double>(fit.box.width) / static_cast<double>(fit.resized_width);
  const double y_scale = static_cast<double>(fit.box.height) / static_cast<double>(fit.resized_height);
  heat.x = static_cast<double>(fit.box.x) + static_cast<double>(fit.left) * x_scale;
  heat.y = static_cast<double>(fit.box.y) + static_cast<double>(fit.top) * y_scale;
  heat.covered_width = recipe.width * x_scale;
  heat.covered_height = recipe.height * y_scale;
  heat.mirrored = fit.flip;
}

std::size_t class_index(const ModelInfo& info, const std::string& name) {
  const auto found = std::ranges::find(info.classes, name);
  if (found == info.classes.end()) {
    constexpr std::size_t max_listed = 12;
    const auto listed = std::span(info.classes).first(std::min(max_listed, info.classes.size()));
    fail("[explain] expected a class of the model ({}{}), got '{}'{}", fmt::join(listed, ", "),
         listed.size() < info.classes.size() ? ", …" : "", name, did_you_mean(name, info.classes));
  }
  return static_cast<std::size_t>(found - info.classes.begin());
}

// Reduced to max_side, or enlarged by a whole factor if it is very small.
Image fitted_picture(const Image& image, std::int64_t max_side) {
  const std::int64_t side = std::max(image.height, image.width);
  const std::int64_t factor = (min_side + side - 1) / side;
  return factor > 1 ? resize_area(image, factor * image.height, factor * image.width)
                    : shrink_to_side(image, max_side);
}

// The map over a picture of the image in another size.
Image render_over(const Image& picture, HeatMap heat, const Image& image) {
  const double x_scale = static_cast<double>(picture.width) / static_cast<double>(image.width);
  const double y_scale = static_cast<double>(picture.height) / static_cast<double>(image.height);
  heat.x *= x_scale;
  heat.covered_width *= x_scale;
  heat.y *= y_scale;
  heat.covered_height *= y_scale;
  return render_heat(picture, heat);
}

void check_floating(const ModelInfo& info) {
  check(!info.quantization,
        "[explain] expected a model in floating point, which has gradients, got one in 8-bit integers");
}

ExplainedImage explain_file(Model& model, const std::filesystem::path& file, const ExplainOptions& options,
                            std::int64_t max_side) {
  ExplainedImage explained;
  Image image;
  try {
    image = load_image_file(file, options.load);
  } catch (const Error& error) {
    const BadSample bad = bad_sample(error, file.string());
    explained.prediction = {.path = file.string(), .error = bad.reason, .error_kind = bad.kind};
    return explained;
  }
  static_cast<Explanation&>(explained) = explain_image(model, image, options);
  explained.prediction.path = file.string();
  explained.truth = class_of_folder(explained.prediction.path, model.info.classes);
  explained.photo = to_rgb(fitted_picture(image, max_side));
  explained.overlay = render_over(explained.photo, explained.heat, image);
  return explained;
}

}  // namespace

Explanation explain_image(Model& model, const Image& image, const ExplainOptions& options) {
  const ModelInfo& info = model.info;
  check_floating(info);
  check(!options.invert || !info.expects_photos(),
        "[explain] expected invert = false for a model of photographs, got true");
  Tensor pixels = model_pixels(info, image, "explain");
  if (options.invert) pixels = inverted(pixels);
  Explanation explanation;
  explanation.prediction =
      make_prediction("", predict_probabilities(*model.module, info, pixels).front(), info);
  explanation.explained =
      options.class_name.empty() ? explanation.prediction.chosen : class_index(info, options.class_name);
  const auto target = static_cast<std::int64_t>(explanation.explained);
  const DType dtype = matmul_precision() == MatmulPrecision::bf16 ? DType::bf16 : DType::f32;
  const Tensor input = network_input(pixels.to(device_of(*model.module)), info.input(), dtype);
  const Tensor map = class_activation_maps(*model.module, input, {&target, 1}, options.method);
  check(map.defined(),
        "[explain] expected a model with convolutions, which class activation maps need, got {}, which has "
        "none",
        info.architecture.to_string());
  explanation.peak = max(map).item<float>();
  explanation.heat = scaled_heat(map, image.height, image.width);
  cover_input(explanation.heat, info, image.height, image.width);
  return explanation;
}

ExplainedImages explain_paths(Model& model, const std::vector<std::string>& paths,
                              const ExplainOptions& options) {
  check(options.count >= 1 && options.count <= max_explained_images,
        "[explain] expected from 1 to {} images, got {}", max_explained_images, options.count);
  check_floating(model.info);
  if (!options.class_name.empty()) class_index(model.info, options.class_name);  // before files are read
  const std::vector<std::filesystem::path> files = find_images(paths).files;
  ExplainedImages all{.images = {}, .files = files.size()};
  const std::size_t count = std::min(options.count, files.size());
  const std::int64_t max_side = options.max_side > 0 ? options.max_side
                                : count > 1          ? side_of_several
                                                     : max_explained_side;
  const ConstantWeights constant;
  for (std::size_t i = 0; i < count; ++i) {  // evenly: sorted files show one class first
    all.images.push_back(explain_file(model, files[i * files.size() / count], options, max_side));
    if (options.on_progress) options.on_progress(i + 1, count);
  }
  return all;
}

}  // namespace tandem
