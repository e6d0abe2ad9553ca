#include "tandem/serve/prediction_service.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "tandem/core/check.h"
#include "tandem/core/did_you_mean.h"
#include "tandem/core/parallel.h"
#include "tandem/image/encode_png.h"
#include "tandem/image/heat_map.h"
#include "tandem/image/resize_area.h"
#include "tandem/serve/page.h"
#include "tandem/serve/prediction_json.h"
#include "tandem/serve/request_images.h"
#include "tandem/text/parse_number.h"
#include "tandem/train/explain/explain.h"

namespace tandem {
namespace {

constexpr std::int64_t max_explained_pixels = 25'000'000, explained_side = 1024;

HttpResponse bad_request(const std::exception& error, int status = 400) {
  const std::string text = error.what();
  const std::size_t end = text.starts_with('[') ? text.find("] ") : std::string::npos;
  return error_response(status, end == std::string::npos ? text : text.substr(end + 2));
}

HttpResponse busy_response() {
  return error_response(503, "too many requests at once", {{"Retry-After", "1"}});
}

}  // namespace

struct PredictionService::Asked {
  std::size_t model = 0;
  std::size_t top = 0;     // 0: all classes
  std::string class_name;  // to explain
};

struct PredictionService::Answering {
  Answering(PredictionService& owner, HttpRequest asked_request, HttpReply promised)
      : service(owner), request(std::move(asked_request)), reply(std::move(promised)) {
    service.waiting_.fetch_add(1);
  }
  ~Answering() {
    service.reserved_.fetch_sub(reserved.exchange(0));
    service.waiting_.fetch_sub(1);
    service.waiting_.notify_all();
  }

  // Counts memory for decoded images. False: there is none left, which the client has been told.
  bool reserve(std::int64_t bytes) {
    reserved = bytes;
    if (service.reserved_.fetch_add(bytes) + bytes <= service.options_.max_decoded_bytes ||
        service.waiting_.load() == 1)
      return true;
    send(busy_response());
    return false;
  }

  // What was reserved is free when the client has its answer: its next request must not be refused for it.
  void send(HttpResponse response) {
    service.reserved_.fetch_sub(reserved.exchange(0));
    reply.send(std::move(response));
  }

  void finish_one() {
    if (left.fetch_sub(1) > 1) return;
    std::size_t unreadable = 0;
    for (const Prediction& answer : answers) unreadable += answer.error.empty() ? 0 : 1;
    if (unreadable > 0) service.metrics_.count_unreadable(unreadable);
    send(predictions_response(service.models_[asked.model]->name(), model->model.info, images.images, answers,
                              asked.top));
  }

  PredictionService& service;
  HttpRequest request;
  HttpReply reply;
  Asked asked;
  std::shared_ptr<LoadedModel> model;  // the version that was current when the request came
  RequestImages images;
  std::atomic<std::int64_t> reserved{0};
  std::vector<Prediction> answers;
  std::atomic<std::size_t> left{0};
  Image picture;            // of explain
  Explanation explanation;  // of explain
};

PredictionService::PredictionService(const std::vector<ModelChoice>& models, const ServiceOptions& options)
    : options_(options), pool_(options.decoders > 0 ? options.decoders : usable_cpus()) {
  check(!models.empty(), "[serve] expected a model, got none");
  check(options.device.is_cuda() || options.precision != MatmulPrecision::tf32,
        "[serve] expected precision fp32 or bf16 on the CPU, got {}", name_of(options.precision));
  for (const ModelChoice& choice : models) {
    for (const auto& other : models_)
      check(other->name() != choice.name,
            "[serve] expected models of different names, got '{}' twice: NAME=PATH gives another name",
            choice.name);
    models_.push_back(std::make_unique<ServedModel>(choice, options.device, options.precision));
  }
  for (int i = 0; i < pool_.thread_count(); ++i) {
    decoders_.push_back(std::make_unique<DecodeProcess>(
        DecodeProcessOptions{.program = options.decoder_program, .max_pixels = options.max_pixels}));
    decoders_.back()->start();
  }
  for (const auto& decoder : decoders_) decoder->probe();  // while the others start
  const auto compute = std::make_shared<std::mutex>();
  for (const auto& model : models_)
    runners_.push_back(std::make_unique<ModelRunner>(
        options.batch, options.precision, compute,
        [this, &name = model->name()](std::size_t images) { metrics_.count_batch(name, images); }));
}

PredictionService::~PredictionService() {
  is_ending_ = true;
  for (const auto& runner : runners_) runner->discard();
  for (std::size_t left = waiting_.load(); left > 0; left = waiting_.load()) waiting_.wait(left);
}

std::vector<Route> PredictionService::routes() {
  const auto json = [](std::string text) { return HttpResponse{.body = std::move(text)}; };
  const auto images = [this](const HttpRequest& request) { return check_images(request); };
  std::vector<Route> all{
      {HttpMethod::get, "/", Access::open,
       [page = drop_page()](const HttpRequest&, HttpReply reply) { reply.send(page); }},
      {HttpMethod::get, "/healthz", Access::open,
       [json](const HttpRequest&, HttpReply reply) { reply.send(json("{\"status\":\"ok\"}\n")); }},
      {HttpMethod::get, "/openapi.json", Access::token,
       [json](const HttpRequest&, HttpReply reply) { reply.send(json(std::string(embedded_openapi))); }},
      {HttpMethod::get, "/metrics", Access::token,
       [this](const HttpRequest&, HttpReply reply) {
         const ServeGauges gauges{connection_count_ ? connection_count_() : 0, waiting_.load()};
         reply.send(
             {.content_type = "text/plain; version=0.0.4; charset=utf-8", .body = metrics_.text(gauges)});
       }},
      {HttpMethod::get, "/v1/models", Access::token,
       [this](const HttpRequest&, HttpReply reply) { reply.send(models_response()); }},
      {HttpMethod::post, "/v1/predict", Access::token,
       [this](HttpRequest request, HttpReply reply) { predict(std::move(request), std::move(reply)); },
       images},
      {HttpMethod::post, "/v1/explain", Access::token,
       [this](HttpRequest request, HttpReply reply) { explain(std::move(request), std::move(reply)); },
       images}};
  paths_.clear();
  for (const Route& route : all) paths_.push_back(route.path);
  return all;
}

void PredictionService::observe(std::string_view path, int status, std::int64_t elapsed_ns) {
  const auto known = std::ranges::find(paths_, path);
  metrics_.count_request(known == paths_.end() ? "other" : *known, status, elapsed_ns);
}

std::vector<std::string> PredictionService::poll_models() {
  std::vector<std::string> lines;
  for (const auto& model : models_) {
    const ServedModel::Poll result = model->poll();
    if (result == ServedModel::Poll::unchanged) continue;
    const bool is_loaded = result == ServedModel::Poll::reloaded;
    metrics_.count_reload(model->name(), is_loaded);
    lines.push_back(
        is_loaded ? fmt::format("Model {} has changed: loaded again", model->name())
                  : fmt::format("Warning: model {} has changed and cannot be loaded, the old one stays: {}",
                                model->name(), model->error()));
  }
  return lines;
}

HttpResponse PredictionService::models_response() const {
  std::vector<NamedModel> rows;
  for (const auto& model : models_) rows.push_back({model->name(), model->current()});
  return {.body = models_json(rows)};
}

// ---- requests ----

// Throws Error.
PredictionService::Asked PredictionService::parse_query_of(const HttpRequest& request) const {
  const auto query = parse_query(request.query);
  check(query.has_value(), "[serve] expected a query as model=NAME&top=N");
  Asked asked;
  for (const auto& [name, value] : *query) {
    if (name == "model") {
      const auto found = std::ranges::find_if(
          models_, [&value = value](const auto& model) { return model->name() == value; });
      if (found == models_.end()) {
        std::vector<std::string> names;
        for (const auto& model : models_) names.push_back(model->name());
        fail("[serve] expected the name of a model of /v1/models{}", did_you_mean(value, names));
      }
      asked.model = static_cast<std::size_t>(found - models_.begin());
    } else if (name == "top" && request.path == "/v1/predict") {
      const auto top = parse_number<std::size_t>(value);
      check(top && *top >= 1, "[serve] expected top as a number from 1");
      asked.top = *top;
    } else if (name == "class" && request.path == "/v1/explain") {
      asked.class_name = value;
    } else {
      fail("[serve] expected only model and top, or model and class to explain, in the query");
    }
  }
  return asked;
}

std::optional<HttpResponse> PredictionService::check_images(const HttpRequest& request) const {
  if (!has_image_type(request))
    return error_response(415,
                          "expected Content-Type image/*, application/octet-stream, multipart/form-data or "
                          "application/json");
  try {
    parse_query_of(request);
    return std::nullopt;
  } catch (const Error& error) {
    return bad_request(error);
  }
}

// Null: there are too many requests, which the client has been told.
std::shared_ptr<PredictionService::Answering> PredictionService::admit(HttpRequest request, HttpReply reply) {
  if (waiting_.load() >= options_.max_waiting) {
    reply.send(busy_response());
    return nullptr;
  }
  auto answering = std::make_shared<Answering>(*this, std::move(request), std::move(reply));
  answering->asked = parse_query_of(answering->request);
  answering->model = models_[answering->asked.model]->current();
  return answering;
}

void PredictionService::predict(HttpRequest request, HttpReply reply) {
  const std::shared_ptr<Answering> answering = admit(std::move(request), std::move(reply));
  if (!answering) return;
  runners_[answering->asked.model]->announce(1);
  pool_.post([this, answering](int thread) { read_request(answering, thread); });
}

void PredictionService::read_request(const std::shared_ptr<Answering>& answering, int thread) {
  ModelRunner& runner = *runners_[answering->asked.model];
  try {
    answering->images = request_images(answering->request);
  } catch (const std::exception& error) {
    runner.withdraw(1);
    answering->send(bad_request(error));
    return;
  }
  const std::size_t count = answering->images.images.size();
  if (!answering->reserve(static_cast<std::int64_t>(count * answering->model->format.bytes()))) {
    runner.withdraw(1);
    return;
  }
  answering->answers.resize(count);
  answering->left = count;
  if (count > 1) runner.announce(count - 1);
  for (std::size_t i = 1; i < count; ++i)
    pool_.post([this, answering, i](int other) { decode(answering, i, other); });
  decode(answering, 0, thread);
}

void PredictionService::decode(const std::shared_ptr<Answering>& answering, std::size_t index, int thread) {
  ModelRunner& runner = *runners_[answering->asked.model];
  Prediction& answer = answering->answers[index];
  try {
    check(!is_ending_, "[serve] the server ends");
    const InputFormat& format = answering->model->format;
    std::vector<std::uint8_t> input(format.bytes());
    decoders_[static_cast<std::size_t>(thread)]->read_input(answering->images.images[index].bytes, format,
                                                            input.data());
    runner.submit({answering->model, std::move(input), [answering, index](Prediction prediction) {
                     answering->answers[index] = std::move(prediction);
                     answering->finish_one();
                   }});
    return;
  } catch (const Error& error) {
    answer.error = image_error(error);
    answer.error_kind = skip_kind(error);
  } catch (const std::exception& error) {  // out of memory
    answer.error = error.what();
    answer.error_kind = SkipKind::unreadable;
  }
  runner.withdraw(1);
  answering->finish_one();
}

// ---- explanations ----

void PredictionService::explain(HttpRequest request, HttpReply reply) {
  const std::shared_ptr<Answering> answering = admit(std::move(request), std::move(reply));
  if (!answering) return;
  pool_.post([this, answering](int thread) { explain_picture(answering, thread); });
}

void PredictionService::explain_picture(const std::shared_ptr<Answering>& answering, int thread) {
  try {
    answering->images = request_images(answering->request);
    check(answering->images.images.size() == 1, "[serve] expected one image to explain, got {}",
          answering->images.images.size());
    if (!answering->reserve(6 * max_explained_pixels)) return;  // with its map
    answering->picture = decoders_[static_cast<std::size_t>(thread)]->decode_image(
        answering->images.images[0].bytes, image_name, {.max_pixels = max_explained_pixels});
  } catch (const DecodeError& error) {
    metrics_.count_unreadable(1);
    answering->send(error_response(status_of(error.kind()), image_error(error)));
    return;
  } catch (const Error& error) {
    answering->send(bad_request(error));
    return;
  }
  runners_[answering->asked.model]->post([this, answering] {
    try {
      answering->explanation = explain_image(answering->model->model, answering->picture,
                                             {.class_name = answering->asked.class_name});
    } catch (const std::exception& error) {
      answering->send(bad_request(error, 422));
      return;
    }
    pool_.post([answering](int) {
      const Image drawn =
          shrink_to_side(render_heat(answering->picture, answering->explanation.heat), explained_side);
      const std::vector<std::uint8_t> png = encode_png(drawn);
      answering->send({.content_type = "image/png", .body = std::string(png.begin(), png.end())});
    });
  });
}

}  // namespace tandem
