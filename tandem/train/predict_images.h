// The steps of a prediction that predict_file(), Classifier and explain_image() share: from an image to the
// model's pixels, and from the model's outputs to a prediction.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tandem/augment/photo.h"
#include "tandem/data/image_folder.h"
#include "tandem/image/image.h"
#include "tandem/train/predict.h"

namespace tandem {

// Memory that ModelPixels reuses from image to image; one per thread.
struct PixelScratch {
  PhotoScratch photo;
  Image converted;
  std::vector<double> row;
};

// Turns images of any size into the 8-bit input of a model: transformed as the model file says, or converted
// to gray or RGB and resized by area.
class ModelPixels {
 public:
  // `op` is the tag of errors.
  explicit ModelPixels(const ModelInfo& info, const char* op = "classifier");

  // Of the input: (count, height, width, channels).
  Shape shape(std::int64_t count) const { return {count, height_, width_, channels_}; }
  // Writes one image of that shape. The view has 1, 3 or 4 channels; the fourth is dropped.
  void write(const ImageView& image, std::uint8_t* out, PixelScratch& scratch) const;

 private:
  std::int64_t height_, width_, channels_;
  bool expects_photos_;
  PhotoRecipe recipe_ = {};
};

// u8 (1, height, width, channels).
Tensor model_pixels(const ModelInfo& info, const Image& image, const char* op = "classifier");

// u8 images with 255 − p for every level p.
Tensor inverted(const Tensor& images);

// The files of `paths`, which need not exist, and all images of its folders, in their order.
ImageList find_images(const std::vector<std::string>& paths);

// The model's outputs (n, classes) on any device as probabilities: f32 (n, classes) on the CPU. Throws Error
// if the model does not have one output per class.
Tensor class_probabilities(const ModelInfo& info, const Tensor& outputs);

// One row of probabilities per image of u8 (n, …), the mean of several views (views.h).
std::vector<std::vector<float>> predict_probabilities(Module& module, const ModelInfo& info,
                                                      const Tensor& images, int views = 1);

// Sets all of the prediction but its path, reusing its memory.
void set_prediction(Prediction& prediction, std::span<const float> row, const ModelInfo& info);
Prediction make_prediction(std::string path, std::span<const float> row, const ModelInfo& info);

}  // namespace tandem
