// tandem serve: answers over HTTP with trained models.
#include <fmt/format.h>

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "apps/tandem/command.h"
#include "apps/tandem/common_flags.h"
#include "apps/tandem/http_site.h"
#include "apps/tandem/with_plugins.h"
#include "tandem/core/host_memory.h"
#include "tandem/serve/prediction_service.h"
#include "tandem/text/message.h"

namespace tandem {
namespace {

struct Flags {
  std::vector<std::string> models;
  std::string device = "auto";
  std::int64_t max_body_mib = 32, body_seconds = 60, reload_seconds = 2;
  std::int64_t max_delay_ms = 2;
  ServiceOptions service;
  HttpFlags http{.listen = "127.0.0.1:8080"};
};

// Looks at the model files at intervals until it is destroyed.
class ModelWatch {
 public:
  ModelWatch(PredictionService& service, std::chrono::seconds interval)
      : thread_([this, &service, interval] {
          std::unique_lock lock(mutex_);
          while (!changed_.wait_for(lock, interval, [this] { return is_ending_; }))
            for (const std::string& line : service.poll_models()) print_message("{}\n", line);
        }) {}
  ~ModelWatch() {
    {
      const std::lock_guard lock(mutex_);
      is_ending_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }
  ModelWatch(const ModelWatch&) = delete;
  ModelWatch& operator=(const ModelWatch&) = delete;

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_ending_ = false;
  std::thread thread_;
};

// "Model plates: resnet18, on cpu in bf16"
std::string model_line(const ServedModel& served, const ServiceOptions& options) {
  const std::shared_ptr<LoadedModel> loaded = served.current();
  const ModelInfo& info = loaded->model.info;
  std::string line = fmt::format("Model {}: {}, on {}", served.name(), info.architecture.to_string(),
                                 options.device.to_string());
  // On the CPU models in 8-bit integers and perceptrons compute the same in every precision.
  const bool ignores_it = !options.device.is_cuda() && (info.quantization || info.input().flat);
  if (options.precision != MatmulPrecision::fp32 && !ignores_it)
    line += fmt::format(" in {}", name_of(options.precision));
  return line;
}

int run(Flags flags) {
  return_freed_memory();
  std::vector<ModelChoice> models;
  for (const std::string& text : flags.models) models.push_back(parse_model_choice(text));
  block_stop_signals();
  flags.service.device = flags.device == "auto" ? default_device() : parse_device(flags.device);
  check_precision(flags.service.precision, flags.service.device, "serve");
  flags.service.batch.max_delay_us = 1000 * flags.max_delay_ms;
  HttpServerOptions& server = flags.http.server;
  server.limits.max_body = flags.max_body_mib << 20;
  server.max_buffered = std::max(server.max_buffered, 4 * server.limits.max_body);
  server.body_timeout_ms = 1000 * flags.body_seconds;

  note_missing_protections();
  HttpSite site(flags.http);  // before the models, which take longer
  PredictionService service(models, flags.service);
  std::optional<ModelWatch> watch;
  site.run(
      service.routes(),
      [&](HttpServer& started) {
        service.set_connection_count([&started] { return started.connection_count(); });
        for (const auto& model : service.models()) print_message("{}\n", model_line(*model, flags.service));
        watch.emplace(service, std::chrono::seconds(flags.reload_seconds));
      },
      [&](std::string_view path, int status, std::int64_t elapsed_ns) {
        service.observe(path, status, elapsed_ns);
      });
  return 0;
}

}  // namespace

void add_serve_command(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("serve", "Answer over HTTP with trained models");
  command->footer(
      "POST /v1/predict takes an image, a form with several files, or JSON with base64, and answers as "
      "tandem\n"
      "predict does, on the CPU to the bit; ?model=NAME chooses one of several models, ?top=N the most "
      "probable classes.\n"
      "POST /v1/explain gives the class activation map as a PNG. GET / is a page to drop a picture on;\n"
      "/v1/models, /healthz, /metrics (Prometheus) and /openapi.json describe the server.\n"
      "A model file that changes is loaded again. Ctrl-C and SIGTERM answer what has begun, then end.\n"
      "Example: tandem serve runs/plates-resnet18-1\n"
      "         curl --data-binary @photo.jpg -H 'Content-Type: image/jpeg' localhost:8080/v1/predict");
  auto flags = std::make_shared<Flags>();
  command
      ->add_option("MODEL", flags->models,
                   "Model files or run folders, also as NAME=PATH; the first is the default")
      ->required()
      ->type_name("");
  command
      ->add_option("--listen", flags->http.listen,
                   "ADDRESS:PORT or unix:PATH; an address that other machines reach needs --token-file")
      ->type_name("ADDRESS")
      ->capture_default_str()
      ->check(usage_check([](const std::string& text) { parse_listen_address(text); }));
  add_access_flags(*command, flags->http);
  command->add_option("--max-batch", flags->service.batch.max_batch, "Images that are computed together")
      ->type_name("N")
      ->capture_default_str()
      ->check(whole_number_check(1, 1024));
  command->add_option("--max-delay", flags->max_delay_ms, "Milliseconds an image waits for others")
      ->type_name("N")
      ->capture_default_str()
      ->check(whole_number_check(0, 10'000));
  command->add_option("--max-queue", flags->service.max_waiting, "Requests at once; more get status 503")
      ->type_name("N")
      ->capture_default_str()
      ->check(whole_number_check(1, 1'000'000));
  command->add_option("--max-body", flags->max_body_mib, "Size of a request in MiB")
      ->type_name("N")
      ->capture_default_str()
      ->check(whole_number_check(1, 4096));
  command->add_option("--max-pixels", flags->service.max_pixels, "Refuse larger images")
      ->type_name("N")
      ->capture_default_str()
      ->check(whole_number_check(1, 179'000'000));
  command
      ->add_option("--max-connections", flags->http.server.max_connections,
                   "Connections at once; more get status 503")
      ->type_name("N")
      ->capture_default_str()
      ->check(whole_number_check(1, 1'000'000));
  command->add_option("--body-seconds", flags->body_seconds, "Time to send a request's body")
      ->type_name("N")
      ->capture_default_str()
      ->check(whole_number_check(1, 86'400));
  command->add_option("--reload-seconds", flags->reload_seconds, "How often model files are looked at")
      ->type_name("N")
      ->capture_default_str()
      ->check(whole_number_check(1, 86'400));
  command->add_option("--decoders", flags->service.decoders, "Processes that decode images; 0: one per CPU")
      ->type_name("N")
      ->capture_default_str()
      ->check(whole_number_check(0, 1024));
  add_with_flag(*command, "The plugin of a model of your own: FILE.so or .cpp");
  add_device_flag(*command, flags->device, "a GPU if there is one");
  add_precision_flag(*command, flags->service.precision);
  command->callback([flags, &action] { action = [flags] { return run(*flags); }; });
}

}  // namespace tandem
