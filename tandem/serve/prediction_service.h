// PredictionService: what `tandem serve` answers. Requests are parsed in a pool of threads, each with a
// process that decodes images, one thread per model computes batches, and the answers go back to the event
// loop.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "tandem/serve/metrics.h"
#include "tandem/serve/model_runner.h"
#include "tandem/serve/served_model.h"
#include "tandem/serve/site.h"
#include "tandem/serve/work_pool.h"
#include "tandem/train/decoders/decode_process.h"

namespace tandem {

struct ServiceOptions {
  BatchOptions batch = {};
  int decoders = 0;                                        // processes that decode; 0: one per CPU
  std::string decoder_program = {};                        // DecodeProcessOptions::program
  std::size_t max_waiting = 256;                           // requests that are being answered; more get 503
  std::int64_t max_pixels = 50'000'000;                    // of an image, from its header
  std::int64_t max_decoded_bytes = std::int64_t{1} << 29;  // images that wait; more get 503
  Device device = cpu_device;
  MatmulPrecision precision = MatmulPrecision::fp32;  // on the CPU fp32 or bf16
};

class PredictionService {
 public:
  // Loads the models; the first is the default. Throws Error as load_model() does, for equal names, for a
  // precision the device does not have, and if images cannot be decoded in confined processes here.
  PredictionService(const std::vector<ModelChoice>& models, const ServiceOptions& options);
  // Nobody waits for answers any more: what has begun is dropped.
  ~PredictionService();
  PredictionService(const PredictionService&) = delete;
  PredictionService& operator=(const PredictionService&) = delete;

  // The service must outlive what uses them.
  std::vector<Route> routes();
  // Counts a response of the server; unknown paths are "other".
  void observe(std::string_view path, int status, std::int64_t elapsed_ns);
  // For /metrics: how many connections the server has.
  void set_connection_count(std::function<std::size_t()> count) { connection_count_ = std::move(count); }

  // Loads models again whose files have changed (ServedModel::poll()). Returns one line for each that was
  // loaded or could not be; the latter begin with "Warning:". Calls from one thread.
  std::vector<std::string> poll_models();

  const std::vector<std::unique_ptr<ServedModel>>& models() const { return models_; }

 private:
  struct Asked;      // what the query of a request says
  struct Answering;  // a request that is being answered

  Asked parse_query_of(const HttpRequest& request) const;
  std::optional<HttpResponse> check_images(const HttpRequest& request) const;
  void predict(HttpRequest request, HttpReply reply);
  void read_request(const std::shared_ptr<Answering>& answering, int thread);
  void decode(const std::shared_ptr<Answering>& answering, std::size_t index, int thread);
  void explain(HttpRequest request, HttpReply reply);
  void explain_picture(const std::shared_ptr<Answering>& answering, int thread);
  std::shared_ptr<Answering> admit(HttpRequest request, HttpReply reply);
  HttpResponse models_response() const;

  ServiceOptions options_;
  std::vector<std::unique_ptr<ServedModel>> models_;
  ServeMetrics metrics_;
  std::function<std::size_t()> connection_count_;
  std::atomic<std::size_t> waiting_{0};
  std::atomic<std::int64_t> reserved_{0};  // bytes of decoded images
  std::atomic<bool> is_ending_{false};
  std::vector<std::string> paths_;
  std::vector<std::unique_ptr<DecodeProcess>> decoders_;  // per thread of the pool
  std::vector<std::unique_ptr<ModelRunner>> runners_;     // per model
  WorkPool pool_;
};

}  // namespace tandem
