// tandem serve, run as a program.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <thread>

#include "tandem/image/encode_png.h"
#include "tests/apps/running_program.h"
#include "tests/serve/http_client.h"
#include "tests/train/classifier_models.h"

namespace tandem {
namespace {

class ServeCommand : public testing::Test {
 protected:
  ServeCommand() {
    save_random_model(folder_ / "m.safetensors", "cnn");
    save_png(folder_ / "photo.png", noise_image(60, 70, 3, 4));
  }

  // A server on a Unix socket, which it is ready to answer on.
  std::unique_ptr<RunningProgram> start(std::vector<std::string> more = {}) {
    std::vector<std::string> words{"serve", "m.safetensors", "--listen", "unix:s", "--device", "cpu"};
    words.insert(words.end(), more.begin(), more.end());
    auto program = std::make_unique<RunningProgram>(words, folder_.path());
    wait_for_text(*program, "Listening on ");
    return program;
  }
  static void wait_for_text(const RunningProgram& program, const std::string& text) {
    while (program.err().find(text) == std::string::npos) {
      ASSERT_FALSE(is_gone(program.pid())) << program.err();
      std::this_thread::yield();
    }
  }
  HttpClient client() { return HttpClient(ListenAddress{.unix_path = (folder_ / "s").string()}); }
  void expect_failure(int status, std::vector<std::string> words, const std::string& error) {
    words.insert(words.begin(), "serve");
    const ProgramResult result = run_program(words, folder_.path());
    EXPECT_EQ(result.status, status);
    EXPECT_EQ(result.err, "tandem: error: " + error + "\n");
  }

  TempFolder folder_;
};

TEST_F(ServeCommand, Answers_AreThoseOfPredict) {
  const auto program = start();
  EXPECT_NE(program->err().find(", on cpu\n"), std::string::npos) << program->err();
  const ClientResponse response = client().ask(
      post_request("/v1/predict", text_of(folder_ / "photo.png"), "Content-Type: image/png\r\n"));
  ASSERT_EQ(response.status, 200) << response.body;
  const auto served = nlohmann::json::parse(response.body).at("predictions").at(0);
  const ProgramResult predicted =
      run_program({"predict", "m.safetensors", "photo.png", "--json"}, folder_.path());
  ASSERT_EQ(predicted.status, 0) << predicted.err;
  auto expected = nlohmann::json::parse(predicted.out).at(0);
  expected.erase("path");
  EXPECT_EQ(served, expected);
}

TEST_F(ServeCommand, AnswersInBf16_AreThoseOfPredictInBf16) {
  const auto program = start({"--precision", "bf16"});
  EXPECT_NE(program->err().find(", on cpu in bf16\n"), std::string::npos) << program->err();
  const ClientResponse response = client().ask(
      post_request("/v1/predict", text_of(folder_ / "photo.png"), "Content-Type: image/png\r\n"));
  ASSERT_EQ(response.status, 200) << response.body;
  const auto served = nlohmann::json::parse(response.body).at("predictions").at(0);
  const auto predicted = [&](const char* precision) {
    const ProgramResult result = run_program(
        {"predict", "m.safetensors", "photo.png", "--json", "--precision", precision}, folder_.path());
    EXPECT_EQ(result.status, 0) << result.err;
    auto row = nlohmann::json::parse(result.out).at(0);
    row.erase("path");
    return row;
  };
  EXPECT_EQ(served, predicted("bf16"));
  EXPECT_NE(served.at("probabilities"), predicted("fp32").at("probabilities"));
}

TEST_F(ServeCommand, PerceptronInBf16_IsNotSaidToUseIt) {
  save_random_model(folder_ / "m.safetensors", "mlp");
  const auto program = start({"--precision", "bf16"});
  EXPECT_NE(program->err().find(", on cpu\n"), std::string::npos) << program->err();
}

TEST_F(ServeCommand, Sigterm_EndsItAfterItsAnswers) {
  const auto program = start();
  HttpClient one = client();
  EXPECT_EQ(one.ask(get_request("/healthz")).status, 200);
  kill(program->pid(), SIGTERM);
  EXPECT_TRUE(one.is_closed());
  EXPECT_EQ(program->wait(), 0);
  EXPECT_TRUE(program->err().ends_with("Stopped\n")) << program->err();
  EXPECT_FALSE(std::filesystem::exists(folder_ / "s"));
}

TEST_F(ServeCommand, ChangedModel_IsSaid) {
  const auto program = start({"--reload-seconds", "1"});
  put_bytes(folder_ / "m.safetensors", "garbage");
  wait_for_text(*program, "Warning: model m has changed and cannot be loaded, the old one stays: ");
  EXPECT_EQ(client().ask(get_request("/v1/models")).status, 200);
}

TEST_F(ServeCommand, TwoServers_GiveOneClearLine) {
  const auto program = start();
  expect_failure(1, {"m.safetensors", "--listen", "unix:s"},
                 "[serve] unix:s is in use: another program listens there");
}

TEST_F(ServeCommand, BadInput_GivesOneClearLine) {
  expect_failure(
      1, {"m.safetensors", "--listen", "0.0.0.0:0"},
      "[serve] expected --token-file FILE to listen on 0.0.0.0:0, which other machines can reach: requests "
      "must then carry its token. The token is not encrypted: put a proxy with TLS (nginx, Caddy) in front, "
      "and let it pass requests to 127.0.0.1");
  expect_failure(1, {"m.safetensors", "--token-file", "none"}, "[serve] none: no such file");
  expect_failure(1, {"none", "--listen", "0"}, "[safetensors] none: no such file");
  expect_failure(
      2, {"m.safetensors", "--listen", "example.com:80"},
      "--listen: expected ADDRESS:PORT with a numeric address, or unix:PATH, got 'example.com:80' (see "
      "tandem serve --help)");
}

}  // namespace
}  // namespace tandem
