#include "tandem/serve/prediction_json.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>

namespace tandem {
namespace {

using Json = nlohmann::ordered_json;

std::string dump(const Json& json) {
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

// Indices of the classes to show.
std::vector<std::size_t> shown_classes(const std::vector<float>& probabilities, std::size_t top) {
  std::vector<std::size_t> order(probabilities.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  if (top == 0) return order;
  std::ranges::stable_sort(order,
                           [&](std::size_t a, std::size_t b) { return probabilities[a] > probabilities[b]; });
  order.resize(std::min(top, order.size()));
  return order;
}

Json prediction_json(const Prediction& answer, const std::vector<std::string>& classes, std::size_t top) {
  Json json{{"class", classes[answer.chosen]}, {"probability", answer.probability}};
  Json& shares = json["probabilities"] = Json::object();
  for (const std::size_t i : shown_classes(answer.probabilities, top))
    shares[classes[i]] = answer.probabilities[i];
  return json;
}

}  // namespace

int status_of(SkipKind kind) {
  switch (kind) {
    case SkipKind::too_large:
      return 413;
    case SkipKind::no_decoder:
      return 415;
    case SkipKind::unreadable:
      return 500;
    default:
      return 422;
  }
}

HttpResponse predictions_response(const std::string& model, const ModelInfo& info,
                                  const std::vector<RequestImage>& images,
                                  const std::vector<Prediction>& answers, std::size_t top) {
  Json rows = Json::array();
  bool any = false;
  for (std::size_t i = 0; i < answers.size(); ++i) {
    Json row = Json::object();
    if (!images[i].name.empty()) row["name"] = images[i].name;
    if (answers[i].error.empty())
      row.update(prediction_json(answers[i], info.classes, top));
    else
      row["error"] = answers[i].error;
    any = any || answers[i].error.empty();
    rows.push_back(std::move(row));
  }
  if (!any && answers.size() == 1) return error_response(status_of(answers[0].error_kind), answers[0].error);
  return {.status = any ? 200 : 422, .body = dump({{"model", model}, {"predictions", std::move(rows)}})};
}

std::string models_json(const std::vector<NamedModel>& models) {
  Json rows = Json::array();
  for (const NamedModel& each : models) {
    const ModelInfo& info = each.version->model.info;
    rows.push_back({{"name", each.name},
                    {"architecture", info.architecture.to_string()},
                    {"classes", info.classes},
                    {"input", {{"height", info.height}, {"width", info.width}, {"channels", info.channels}}},
                    {"transform", info.transform},
                    {"epoch", info.epoch},
                    {"accuracy", info.accuracy}});
  }
  return dump({{"models", std::move(rows)}});
}

}  // namespace tandem
