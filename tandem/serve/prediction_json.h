// Answers of the prediction service as JSON.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tandem/serve/http_message.h"
#include "tandem/serve/request_images.h"
#include "tandem/serve/served_model.h"
#include "tandem/train/prediction.h"

namespace tandem {

// One prediction per image, with the `top` most probable classes, or all in the model's order for 0. The
// numbers are those of `tandem predict --json`. The status is 200 if an image could be read.
HttpResponse predictions_response(const std::string& model, const ModelInfo& info,
                                  const std::vector<RequestImage>& images,
                                  const std::vector<Prediction>& answers, std::size_t top);

// The status for an image without a prediction; unreadable: not because of the image.
int status_of(SkipKind kind);

struct NamedModel {
  std::string name;
  std::shared_ptr<LoadedModel> version;
};

// Names, classes and inputs; nothing of paths.
std::string models_json(const std::vector<NamedModel>& models);

}  // namespace tandem
