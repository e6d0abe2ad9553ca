#include "tandem/train/predict.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <span>

#include "tandem/core/check.h"
#include "tandem/data/image_folder.h"
#include "tandem/data/photo_set.h"
#include "tandem/files/idx.h"
#include "tandem/files/packed_path.h"
#include "tandem/files/read_file.h"
#include "tandem/image/decode.h"
#include "tandem/report/csv.h"
#include "tandem/text/utf8.h"
#include "tandem/train/evaluation_mode.h"
#include "tandem/train/predict_images.h"

namespace tandem {
namespace {

constexpr std::uint64_t max_bytes = max_image_file_bytes;

// idx files begin with two zero bytes, gzip files with their magic number. Of the image formats only HEIC
// begins with zeros, the length of its box "ftyp".
bool is_idx(std::string_view bytes) {
  const bool is_heic = bytes.size() >= 8 && bytes.substr(4, 4) == "ftyp";
  return (bytes.starts_with(std::string_view("\0\0", 2)) && !is_heic) || bytes.starts_with("\x1f\x8b");
}

Tensor idx_images(const ModelInfo& info, const std::string& bytes, const std::string& name) {
  Tensor images = parse_idx(bytes, name);
  check(images.dtype() == DType::u8 && images.rank() == 3 && images.numel() > 0 && info.channels == 1 &&
            images.size(1) == info.height && images.size(2) == info.width,
        "[predict] {}: expected u8 images of shape [count, {}, {}], as the model's, got {} of {}", name,
        info.height, info.width, images.shape().to_string(), name_of(images.dtype()));
  return images;
}

void predict_photos(Model& model, std::span<const std::filesystem::path> files, const PredictOptions& options,
                    std::vector<Prediction>& all) {
  check(!options.invert, "[predict] expected invert = false for a model of photographs, got true");
  constexpr std::size_t batch = 64;  // enough to occupy all cores, small enough for any memory
  const PhotoRecipe recipe = model.info.photo_recipe();
  for (std::size_t begin = 0; begin < files.size(); begin += batch) {
    const auto part = files.subspan(begin, std::min(batch, files.size() - begin));
    const DecodedImages made = load_photos(part, recipe, options.decode);
    const auto rows = predict_probabilities(*model.module, model.info, made.images, options.views);
    for (std::size_t i = 0; i < part.size(); ++i)
      all.push_back(made.bad[i].reason.empty() ? make_prediction(part[i].string(), rows[i], model.info)
                                               : Prediction{.path = part[i].string(),
                                                            .error = made.bad[i].reason,
                                                            .error_kind = made.bad[i].kind});
    if (options.on_progress) options.on_progress(begin + part.size(), files.size());
  }
}

void predict_one_by_one(Model& model, std::span<const std::filesystem::path> files,
                        const PredictOptions& options, std::vector<Prediction>& all) {
  std::size_t done = 0;
  for (const std::filesystem::path& file : files) {
    if (options.on_progress) options.on_progress(done++, files.size());
    try {
      std::vector<Prediction> rows = predict_file(model, file, options);
      all.insert(all.end(), std::make_move_iterator(rows.begin()), std::make_move_iterator(rows.end()));
    } catch (const Error& error) {
      const BadSample bad = bad_sample(error, file.string());
      all.push_back({.path = file.string(), .error = bad.reason, .error_kind = bad.kind});
    }
  }
}

}  // namespace

Tensor inverted(const Tensor& images) {
  std::vector<std::uint8_t> pixels = images.to_vector<std::uint8_t>();
  for (std::uint8_t& pixel : pixels) pixel = static_cast<std::uint8_t>(255 - pixel);
  return Tensor::from(pixels, images.shape());
}

std::vector<Prediction> predict_file(Model& model, const std::filesystem::path& path,
                                     const PredictOptions& options) {
  const ModelInfo& info = model.info;
  const std::string bytes = read_file("predict", path, max_bytes), name = path.string();
  const bool is_idx_file = is_idx(bytes);
  const std::span<const std::uint8_t> raw(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
  Tensor images =
      is_idx_file
          ? idx_images(info, bytes, name)
          : model_pixels(info, decode_image(raw, name, {.max_pixels = options.decode.max_pixels}), "predict");
  if (options.invert) images = inverted(images);
  std::vector<Prediction> all;
  for (const std::vector<float>& row : predict_probabilities(*model.module, info, images, options.views))
    all.push_back(make_prediction(is_idx_file ? fmt::format("{}#{}", name, all.size()) : name, row, info));
  return all;
}

ImageList find_images(const std::vector<std::string>& paths) {
  ImageList all;
  for (const std::string& path : paths) {
    if (!is_folder(path)) {
      all.files.emplace_back(path);
      continue;
    }
    const ImageList found = list_images(path);
    all.files.insert(all.files.end(), found.files.begin(), found.files.end());
    all.skipped.insert(all.skipped.end(), found.skipped.begin(), found.skipped.end());
  }
  return all;
}

std::vector<Prediction> predict_paths(Model& model, const std::vector<std::string>& paths,
                                      const PredictOptions& options) {
  const ImageList found = find_images(paths);
  std::vector<Prediction> all;
  const ConstantWeights constant;
  if (model.info.expects_photos())
    predict_photos(model, found.files, options, all);
  else
    predict_one_by_one(model, found.files, options, all);
  for (const SkippedSample& file : found.skipped)
    all.push_back({.path = file.name, .error = file.reason, .error_kind = file.kind});
  return all;
}

std::size_t error_count(const std::vector<Prediction>& predictions) {
  return static_cast<std::size_t>(
      std::ranges::count_if(predictions, [](const Prediction& row) { return !row.error.empty(); }));
}

std::vector<SkippedSample> unread_files(const std::vector<Prediction>& predictions) {
  std::vector<SkippedSample> files;
  for (const Prediction& row : predictions)
    if (!row.error.empty()) files.push_back({.name = row.path, .reason = row.error, .kind = row.error_kind});
  return files;
}

std::string predictions_csv(const std::vector<Prediction>& predictions,
                            const std::vector<std::string>& classes) {
  const bool errors = error_count(predictions) > 0;
  std::string text = "path,class,probability";
  for (const std::string& name : classes) text += fmt::format(",{}", csv_field(one_line(name)));
  text += errors ? ",error\n" : "\n";
  for (const Prediction& row : predictions) {
    text += csv_field(row.path);
    if (row.error.empty()) {
      text +=
          fmt::format(",{},{:.6f}", csv_field(one_line(classes[row.chosen])), row.probabilities[row.chosen]);
      for (const float probability : row.probabilities) text += fmt::format(",{:.6f}", probability);
      text += errors ? ",\n" : "\n";
    } else {
      text += std::string(2 + classes.size(), ',') + fmt::format(",{}\n", csv_field(row.error));
    }
  }
  return text;
}

std::string id_label_csv(const std::vector<Prediction>& predictions,
                         const std::vector<std::string>& classes) {
  std::string text = "id,label\n";
  for (const Prediction& row : predictions)
    text += fmt::format("{},{}\n", csv_field(std::filesystem::path(row.path).stem().string()),
                        row.error.empty() ? csv_field(one_line(classes[row.chosen])) : "");
  return text;
}

std::string predictions_json(const std::vector<Prediction>& predictions,
                             const std::vector<std::string>& classes) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const Prediction& row : predictions) {
    nlohmann::ordered_json json{{"path", row.path}};
    if (row.error.empty()) {
      json["class"] = classes[row.chosen];
      json["probability"] = row.probabilities[row.chosen];
      for (std::size_t i = 0; i < classes.size(); ++i)
        json["probabilities"][classes[i]] = row.probabilities[i];
    } else {
      json["error"] = row.error;
    }
    rows.push_back(std::move(json));
  }
  return rows.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace tandem
