// A prediction service behind a server on a loopback port, in this process.
#pragma once

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <thread>

#include "tandem/image/encode_png.h"
#include "tandem/serve/http_server.h"
#include "tandem/serve/prediction_service.h"
#include "tandem/train/predict.h"
#include "tests/image/test_files.h"
#include "tests/paths.h"
#include "tests/serve/http_client.h"
#include "tests/train/classifier_models.h"

namespace tandem {

class ServiceTest : public testing::Test {
 protected:
  ~ServiceTest() override { stop(); }

  void stop() {
    if (!thread_.joinable()) return;
    server_->stop();
    server_->stop();
    thread_.join();
  }

  std::string add_model(const std::string& name, const std::string& kind, std::uint64_t seed = 3) {
    const std::string path = (folder_ / (name + ".safetensors")).string();
    save_random_model(path, kind, seed);
    return path;
  }
  void start(const std::vector<std::string>& models, ServiceOptions options = {},
             const std::string& token = "") {
    std::vector<ModelChoice> choices;
    for (const std::string& model : models) choices.push_back(parse_model_choice(model));
    options.decoder_program = program_file;
    service_ = std::make_unique<PredictionService>(choices, options);
    ListenSocket socket(parse_listen_address("127.0.0.1:0"));
    site_ = std::make_unique<Site>(service_->routes(), site_rules(socket.address(), {}, token));
    server_ = std::make_unique<HttpServer>(
        std::move(socket),
        HttpHandlers{
            .check = [this](const HttpRequest& request) { return site_->check(request); },
            .handle = [this](HttpRequest request,
                             HttpReply reply) { site_->handle(std::move(request), std::move(reply)); },
            .observe = [this](std::string_view path, int status,
                              std::int64_t elapsed_ns) { service_->observe(path, status, elapsed_ns); }});
    thread_ = std::thread([this] { server_->run(); });
  }

  HttpClient client() const { return HttpClient(server_->address()); }
  ClientResponse get(const std::string& target) const { return client().ask(get_request(target)); }
  ClientResponse post(const std::string& target, std::string_view body,
                      const std::string& type = "image/png") const {
    return client().ask(post_request(target, body, "Content-Type: " + type + "\r\n"));
  }
  static std::string png(const Image& image) {
    const std::vector<std::uint8_t> bytes = encode_png(image);
    return {bytes.begin(), bytes.end()};
  }
  // What `tandem predict` says of these bytes.
  Prediction predicted(const std::string& model_path, const std::string& bytes,
                       MatmulPrecision precision = MatmulPrecision::fp32) const {
    const MatmulPrecisionScope scope(precision);
    const std::string path = (folder_ / "image-of-predict").string();
    put_bytes(path, bytes);
    Model model = load_model(model_path);
    return predict_paths(model, {path}).at(0);
  }
  static void expect_equal(const nlohmann::json& answer, const Prediction& expected,
                           const std::vector<std::string>& classes) {
    ASSERT_EQ(expected.error, "");
    EXPECT_EQ(answer.at("class"), expected.class_name);
    EXPECT_EQ(answer.at("probability").get<float>(), expected.probability);
    for (std::size_t i = 0; i < classes.size(); ++i)
      EXPECT_EQ(answer.at("probabilities").at(classes[i]).get<float>(), expected.probabilities[i]);
  }

  TempFolder folder_;
  std::unique_ptr<PredictionService> service_;
  std::unique_ptr<Site> site_;
  std::unique_ptr<HttpServer> server_;
  std::thread thread_;
};

}  // namespace tandem
