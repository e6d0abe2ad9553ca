// The prediction service over HTTP: the bits of predict, every form of request, and bad input.
#include "tandem/serve/prediction_service.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <fstream>
#include <set>

#include "tandem/core/parallel.h"
#include "tandem/device/buffer.h"
#include "tandem/image/heat_map.h"
#include "tandem/nn/quantized_resnet.h"
#include "tandem/ops/random.h"
#include "tandem/serve/page.h"
#include "tandem/train/explain/explain.h"
#include "tests/paths.h"
#include "tests/process/without_capabilities.h"
#include "tests/serve/service_fixture.h"

namespace tandem {
namespace {

using nlohmann::json;

std::string read_text(const std::filesystem::path& path) {
  const std::vector<std::uint8_t> bytes = read_bytes(path);
  return {bytes.begin(), bytes.end()};
}

// A PNG that says it has 50,000 x 50,000 pixels: its signature and header, as a client would send them.
std::string huge_png() {
  return std::string("\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\xc3\x50\0\0\xc3\x50\x08\x02\0\0\0", 29) +
         std::string("\xc4\xcd\xaa\x9d\0\0\0\x40IDAT", 12) + std::string(64, '\0');
}

constexpr const char* form_type = "multipart/form-data; boundary=b";

// The parts of a form, named 0.png, 1.png, …
std::string form_of(const std::vector<std::string>& files) {
  std::string form;
  for (std::size_t i = 0; i < files.size(); ++i)
    form += "--b\r\nContent-Disposition: form-data; name=\"images\"; filename=\"" + std::to_string(i) +
            ".png\"\r\nContent-Type: image/png\r\n\r\n" + files[i] + "\r\n";
  return form;
}

TEST_F(ServiceTest, EveryFormAndFormat_HasTheBitsOfPredict) {
  const std::vector<std::string> models{add_model("photos", "cnn"), add_model("small", "mlp")};
  start(models);
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(golden_folder()))
    if (entry.is_regular_file() && entry.path().extension() != ".npy" && can_decode_file(entry.path()))
      files.push_back(read_text(entry.path()));
  files.push_back(png(noise_image(61, 47, 3, 1)));
  files.push_back(png(noise_image(333, 36, 1, 2)));
  const std::vector<std::string> classes = random_model_info("mlp").classes;
  int readable = 0;
  for (std::size_t m = 0; m < models.size(); ++m) {
    Model model = load_model(models[m]);
    for (std::size_t i = 0; i < files.size(); ++i) {
      const std::string path = (folder_ / std::to_string(i)).string();
      put_bytes(path, files[i]);
      const Prediction expected = predict_paths(model, {path}).at(0);
      const ClientResponse response = post(m == 0 ? "/v1/predict" : "/v1/predict?model=small", files[i]);
      EXPECT_EQ(response.status == 200, expected.error.empty()) << expected.error << response.body;
      if (response.status != 200) continue;
      expect_equal(json::parse(response.body).at("predictions").at(0), expected, classes);
      ++readable;
    }
  }
  EXPECT_GE(readable, 8);
}

// Also on a GPU where there is one, whose last layer has other roundings.
TEST_F(ServiceTest, ModelIn8BitIntegers_HasTheAnswersOfPredict) {
  ResNet exact({.depth = 18, .classes = 3, .seed = 3});
  exact.eval();
  ResNetCalibration calibration(exact);
  calibration.observe(normal({2, 32, 32, 3}, 0, 1, {.seed = 5}));
  ModelInfo info = random_model_info("resnet18");
  info.quantization = QuantizationInfo{.method = "max", .data = "x", .command = "y"};
  const std::string path = (folder_ / "small.safetensors").string(), image = png(noise_image(61, 47, 3, 1));
  save_model(path, *calibration.quantize(detail::CalibrationMethod::max), info);
  const Prediction expected = predicted(path, image);
  ASSERT_EQ(expected.error, "");
  EXPECT_EQ(predicted(path, image, MatmulPrecision::bf16).probabilities, expected.probabilities);
  for (const auto& [device, precision] :
       {std::pair{cpu_device, MatmulPrecision::fp32}, std::pair{cpu_device, MatmulPrecision::bf16},
        std::pair{cuda_device(), MatmulPrecision::fp32}}) {
    if (device.is_cuda() && cuda_device_count() == 0) continue;
    stop();
    start({path}, {.device = device, .precision = precision});
    const ClientResponse response = post("/v1/predict", image);
    ASSERT_EQ(response.status, 200) << response.body;
    EXPECT_NEAR(json::parse(response.body).at("predictions").at(0).at("probability").get<float>(),
                expected.probability, device.is_cuda() ? 1e-4f : 0);
  }
}

TEST_F(ServiceTest, PredictionsInBf16_HaveTheBitsOfPredictInBf16) {
  const std::vector<std::string> kinds{"cnn", "resnet18", "lenet", "mlp"};
  std::vector<std::string> models, files, paths;
  for (const std::string& kind : kinds) models.push_back(add_model(kind, kind));
  for (std::uint32_t i = 0; i < 5; ++i) {
    files.push_back(png(noise_image(33 + i, 40, 3, i)));
    paths.push_back((folder_ / std::to_string(i)).string());
    put_bytes(paths.back(), files.back());
  }
  start(models, {.batch = {.max_batch = 4}, .precision = MatmulPrecision::bf16});
  for (std::size_t m = 0; m < models.size(); ++m) {
    SCOPED_TRACE(kinds[m]);
    const ClientResponse response =
        post("/v1/predict?model=" + kinds[m], form_of(files) + "--b--\r\n", form_type);
    ASSERT_EQ(response.status, 200) << response.body;
    Model model = load_model(models[m]);
    const std::vector<Prediction> exact = predict_paths(model, paths);
    const MatmulPrecisionScope scope(MatmulPrecision::bf16);
    const std::vector<Prediction> expected = predict_paths(model, paths);
    for (std::size_t i = 0; i < files.size(); ++i) {
      expect_equal(json::parse(response.body).at("predictions").at(i), expected[i], model.info.classes);
      // Perceptrons have f32 inputs.
      EXPECT_EQ(expected[i].probabilities == exact[i].probabilities, kinds[m] == "mlp");
    }
  }
}

TEST_F(ServiceTest, MapsInBf16_HaveTheBitsOfExplainInBf16) {
  const std::string path = add_model("photos", "cnn");
  start({path}, {.precision = MatmulPrecision::bf16});
  const Image picture = noise_image(33, 40, 3, 0);
  Model model = load_model(path);
  const auto explained = [&](MatmulPrecision precision) {
    const MatmulPrecisionScope scope(precision);
    return png(render_heat(picture, explain_image(model, picture).heat));
  };
  const ClientResponse response = post("/v1/explain", png(picture));
  ASSERT_EQ(response.status, 200) << response.body;
  EXPECT_EQ(response.body, explained(MatmulPrecision::bf16));
  EXPECT_NE(response.body, explained(MatmulPrecision::fp32));
}

TEST_F(ServiceTest, SeveralImages_AreAnsweredInTheirOrder) {
  const std::string model = add_model("photos", "cnn");
  start({model}, {.batch = {.max_batch = 4}});
  std::vector<std::string> files;
  for (std::uint32_t i = 0; i < 11; ++i) files.push_back(png(noise_image(30 + i, 40, 3, i)));
  const std::string bad =
      "--b\r\nContent-Disposition: form-data; name=\"images\"; filename=\"bad\"\r\n\r\nno image\r\n--b--\r\n";
  const ClientResponse response = post("/v1/predict", form_of(files) + bad, form_type);
  ASSERT_EQ(response.status, 200) << response.body;
  const json rows = json::parse(response.body).at("predictions");
  ASSERT_EQ(rows.size(), 12u);
  for (std::size_t i = 0; i < files.size(); ++i) {
    EXPECT_EQ(rows[i].at("name"), std::to_string(i) + ".png");
    expect_equal(rows[i], predicted(model, files[i]), random_model_info("cnn").classes);
  }
  EXPECT_EQ(rows[11].at("name"), "bad");
  EXPECT_NE(rows[11].at("error").get<std::string>(), "");
  EXPECT_FALSE(rows[11].contains("class"));
}

TEST_F(ServiceTest, ManyClientsAtOnce_GetTheirOwnAnswers) {
  const std::string model = add_model("photos", "cnn");
  start({model}, {.batch = {.max_batch = 5, .max_delay_us = 500}, .decoders = 3});
  std::vector<std::string> files;
  std::vector<Prediction> expected;
  for (std::uint32_t i = 0; i < 6; ++i) {
    files.push_back(png(noise_image(32, 40 + i, 3, i)));
    expected.push_back(predicted(model, files.back()));
  }
  std::vector<std::thread> clients;
  for (std::size_t c = 0; c < 6; ++c)
    clients.emplace_back([&, c] {
      HttpClient one = client();
      for (std::size_t i = 0; i < 20; ++i) {
        const std::size_t file = (c + i) % files.size();
        const ClientResponse response =
            one.ask(post_request("/v1/predict", files[file], "Content-Type: image/png\r\n"));
        ASSERT_EQ(response.status, 200) << response.body;
        expect_equal(json::parse(response.body).at("predictions").at(0), expected[file],
                     random_model_info("cnn").classes);
      }
    });
  for (std::thread& each : clients) each.join();
  const std::string metrics = get("/metrics").body;
  EXPECT_NE(metrics.find("tandem_images_total{model=\"photos\"} 120\n"), std::string::npos) << metrics;
  EXPECT_NE(metrics.find("tandem_requests_total{path=\"/v1/predict\",status=\"200\"} 120\n"),
            std::string::npos);
  EXPECT_NE(metrics.find("tandem_request_seconds_count{path=\"/v1/predict\"} 120\n"), std::string::npos);
}

// The processes that the threads of this one have started.
std::vector<pid_t> child_processes() {
  std::vector<pid_t> all;
  for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream file(thread.path() / "children");
    for (pid_t child = 0; file >> child;) all.push_back(child);
  }
  return all;
}

TEST_F(ServiceTest, KilledDecoders_CostNoAnswer) {
  const std::string model = add_model("photos", "cnn");
  start({model}, {.decoders = 2});
  const std::string file = png(noise_image(50, 60, 3, 5));
  const Prediction expected = predicted(model, file);
  for (int i = 0; i < 10; ++i) {
    const std::vector<pid_t> decoders = child_processes();
    EXPECT_EQ(decoders.size(), 2u);
    for (const pid_t decoder : decoders) kill(decoder, SIGKILL);
    for (int n = 0; n < 4; ++n) {
      const ClientResponse response = post("/v1/predict", file);
      ASSERT_EQ(response.status, 200) << response.body;
      expect_equal(json::parse(response.body).at("predictions").at(0), expected,
                   random_model_info("cnn").classes);
    }
    EXPECT_EQ(post("/v1/explain", file).status, 200);
  }
}

TEST_F(ServiceTest, Top_GivesTheMostProbableClasses) {
  start({add_model("photos", "cnn")});
  const std::string file = png(noise_image(40, 40, 3, 9));
  const json all = json::parse(post("/v1/predict", file).body).at("predictions").at(0).at("probabilities");
  const auto text = post("/v1/predict?top=2&model=photos", file).body;
  const auto top = nlohmann::ordered_json::parse(text).at("predictions").at(0).at("probabilities");
  ASSERT_EQ(top.size(), 2u);
  double previous = 2;
  for (const auto& [name, share] : top.items()) {
    EXPECT_EQ(all.at(name), share);
    EXPECT_LE(share.get<double>(), previous);
    previous = share;
  }
}

TEST_F(ServiceTest, Explain_GivesAPicture) {
  start({add_model("photos", "cnn"), add_model("flat", "mlp")});
  const std::string file = png(noise_image(50, 70, 3, 9));
  const ClientResponse response = post("/v1/explain?class=c", file);
  ASSERT_EQ(response.status, 200) << response.body;
  EXPECT_EQ(response.fields.at("content-type"), "image/png");
  const Image picture = decode_image(bytes_of(response.body), "answer");
  EXPECT_EQ(picture.width, 70);
  EXPECT_EQ(picture.height, 50);
  EXPECT_EQ(post("/v1/explain?class=d", file).status, 422);
  EXPECT_EQ(post("/v1/explain?model=flat", file).status, 422);
  EXPECT_EQ(post("/v1/explain", "no image").status, 422);
  EXPECT_EQ(post("/v1/explain", huge_png()).status, 413);
}

TEST_F(ServiceTest, BadImages_GiveOneClearLine) {
  start({add_model("photos", "cnn")}, {.max_pixels = 10'000});
  const std::string good = png(noise_image(50, 70, 3, 9));
  const ClientResponse none = post("/v1/predict", "hello");
  EXPECT_EQ(none.status, 422);
  EXPECT_NE(json::parse(none.body).at("error").get<std::string>(), "");
  EXPECT_EQ(post("/v1/predict", "").status, 422);
  EXPECT_EQ(post("/v1/predict", good.substr(0, good.size() / 2)).status, 422);
  EXPECT_EQ(post("/v1/predict", png(noise_image(101, 100, 3, 1))).status, 413);
  EXPECT_EQ(post("/v1/predict", huge_png()).status, 413);
  EXPECT_EQ(post("/v1/predict", good, "text/plain").status, 415);
  EXPECT_EQ(post("/v1/predict", good, "multipart/form-data").status, 400);
  EXPECT_EQ(post("/v1/predict", "{}", "application/json").status, 400);
  EXPECT_EQ(post("/v1/predict", good).status, 200);
  EXPECT_NE(get("/metrics").body.find("tandem_unreadable_images_total 5\n"), std::string::npos);
}

TEST_F(ServiceTest, ModelsAreNames_NeverPaths) {
  const std::string path = add_model("photos", "cnn");
  start({path});
  const std::string file = png(noise_image(20, 20, 3, 9));
  for (const std::string& name : {path, std::string("photos.safetensors"), std::string("../photos"),
                                  std::string("..%2f..%2fetc%2fpasswd"), std::string("%00"), std::string()})
    EXPECT_EQ(post("/v1/predict?model=" + name, file).status, 400) << name;
  for (const char* const query :
       {"top=0", "top=-1", "top=x", "top=1&top=2", "path=/etc/passwd", "model=%", "class=c"})
    EXPECT_EQ(post(std::string("/v1/predict?") + query, file).status, 400) << query;
  for (const char* const target :
       {"/v1/models/photos", "/v1/../../etc/passwd", "/../etc/passwd", "/%2e%2e/etc/passwd", "/v1/predict/"})
    EXPECT_EQ(get(target).status, 404) << target;
  const std::string models = get("/v1/models").body;
  EXPECT_EQ(json::parse(models).at("models").at(0).at("name"), "photos");
  EXPECT_EQ(json::parse(models).at("models").at(0).at("classes").size(), 3u);
  EXPECT_EQ(models.find(folder_.path().string()), std::string::npos) << models;
}

TEST_F(ServiceTest, TooManyRequests_AreToldToRetry) {
  start({add_model("photos", "cnn")}, {.decoders = 1, .max_waiting = 1});
  const std::string asked =
      post_request("/v1/predict", png(noise_image(400, 400, 3, 9)), "Content-Type: image/png\r\n");
  bool busy = false, answered = false;
  while (!busy || !answered) {  // one of several at once is answered, sooner or later another is refused
    std::vector<HttpClient> all;
    for (int i = 0; i < 8; ++i) all.push_back(client());
    for (const HttpClient& each : all) each.write(asked);
    for (HttpClient& each : all) {
      const ClientResponse response = each.read();
      EXPECT_EQ(response.fields.contains("retry-after"), response.status == 503);
      busy = busy || response.status == 503;
      answered = answered || response.status == 200;
    }
  }
}

TEST_F(ServiceTest, DecodedImagesTogether_AreLimited) {
  start({add_model("photos", "cnn")}, {.decoders = 1, .max_decoded_bytes = 32 * 32 * 3 * 4});
  std::string form;
  const std::string file = png(noise_image(4, 4, 3, 9));
  for (int i = 0; i < 64; ++i)
    form += "--b\r\nContent-Disposition: form-data; name=a; filename=b\r\n\r\n" + file + "\r\n";
  form += "--b--\r\n";
  const std::string asked =
      post_request("/v1/predict", form, "Content-Type: multipart/form-data; boundary=b\r\n");
  EXPECT_EQ(client().ask(asked).status, 200);  // alone
  bool busy = false, answered = false;
  while (!busy || !answered) {
    std::vector<HttpClient> all;
    for (int i = 0; i < 8; ++i) all.push_back(client());
    for (const HttpClient& each : all) each.write(asked);
    for (HttpClient& each : all) {
      const int status = each.read().status;
      EXPECT_TRUE(status == 200 || status == 503) << status;
      busy = busy || status == 503;
      answered = answered || status == 200;
    }
  }
}

TEST_F(ServiceTest, End_DoesNotWaitForWhatNobodyWaitsFor) {
  start({add_model("photos", "cnn")}, {.decoders = 1});
  const std::string asked =
      post_request("/v1/predict", png(noise_image(600, 600, 3, 9)), "Content-Type: image/png\r\n");
  std::vector<HttpClient> all;
  for (int i = 0; i < 100; ++i) all.push_back(client());
  for (const HttpClient& each : all) each.write(asked);
  EXPECT_EQ(all[0].read().status, 200);
  stop();
  service_.reset();
}

TEST_F(ServiceTest, EveryRoute_HasAnAccessRule) {
  start({add_model("photos", "cnn")}, {}, "0123456789abcdef");
  const std::set<std::string> open{"/", "/healthz"};
  std::set<std::string> paths;
  for (const Route& route : site_->routes()) {
    paths.insert(route.path);
    EXPECT_EQ(route.access, open.contains(route.path) ? Access::open : Access::token) << route.path;
    const auto ask = [&](const std::string& fields) {
      HttpClient one = client();
      return one
          .ask(route.method == HttpMethod::get
                   ? get_request(route.path, fields)
                   : post_request(route.path, "x", "Content-Type: image/png\r\n" + fields))
          .status;
    };
    EXPECT_EQ(ask(""), open.contains(route.path) ? 200 : 401) << route.path;
    EXPECT_EQ(ask("Authorization: Bearer 0123456789abcdeX\r\n"), open.contains(route.path) ? 200 : 401);
    EXPECT_EQ(ask("Authorization: Bearer 0123456789abcdef\r\n"), route.method == HttpMethod::get ? 200 : 422);
  }
  const json described = json::parse(embedded_openapi).at("paths");
  for (const std::string& path : paths) EXPECT_TRUE(path == "/" || described.contains(path)) << path;
  EXPECT_EQ(described.size() + 1, paths.size());
}

TEST_F(ServiceTest, ChangedModelFile_IsLoadedAgain) {
  const std::string path = add_model("photos", "cnn");
  start({path});
  const std::string file = png(noise_image(40, 40, 3, 9));
  const auto probability = [&] {
    return json::parse(post("/v1/predict", file).body).at("predictions").at(0).at("probability").get<float>();
  };
  const float before = probability();
  EXPECT_TRUE(service_->poll_models().empty());
  save_random_model(path, "resnet18", 8);        // another architecture
  EXPECT_TRUE(service_->poll_models().empty());  // it may still be written
  EXPECT_EQ(service_->poll_models(), (std::vector<std::string>{"Model photos has changed: loaded again"}));
  EXPECT_TRUE(service_->poll_models().empty());
  const float after = probability();
  EXPECT_NE(before, after);
  EXPECT_EQ(after, predicted(path, file).probability);

  put_bytes(path, "garbage");
  EXPECT_TRUE(service_->poll_models().empty());
  const std::vector<std::string> lines = service_->poll_models();
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_TRUE(
      lines[0].starts_with("Warning: model photos has changed and cannot be loaded, the old one stays: "))
      << lines[0];
  EXPECT_EQ(lines[0].find('\n'), std::string::npos);
  EXPECT_TRUE(service_->poll_models().empty());  // said once
  EXPECT_EQ(probability(), after);
  std::filesystem::remove(path);
  EXPECT_TRUE(service_->poll_models().empty());
  EXPECT_EQ(probability(), after);
  save_random_model(path, "cnn");
  service_->poll_models();
  service_->poll_models();
  EXPECT_EQ(probability(), before);
}

// Weights that were packed again for a request would leave the memory of their packing in the pool.
TEST_F(ServiceTest, LoadedAgainModel_GivesBackTheMemoryOfTheOldOne) {
  for (const MatmulPrecision precision : {MatmulPrecision::fp32, MatmulPrecision::bf16}) {
    SCOPED_TRACE(name_of(precision));
    stop();
    const std::string path = add_model("photos", "resnet18");
    start({path}, {.precision = precision});
    const std::string file = png(noise_image(40, 40, 3, 9));
    const auto used_after_reload = [&](std::uint64_t seed) {
      save_random_model(path, "resnet18", seed);
      service_->poll_models();
      EXPECT_EQ(service_->poll_models().size(), 1u);
      for (int i = 0; i < 3; ++i) EXPECT_EQ(post("/v1/predict", file).status, 200);
      const PoolStatistics pool = pool_statistics(cpu_device);
      // The activations of a small image, and the memory of each thread.
      EXPECT_LT(pool.bytes_cached,
                pool.bytes_in_use / 20 + (static_cast<std::int64_t>(thread_count()) << 20));
      return pool.bytes_in_use;
    };
    const std::int64_t first = used_after_reload(4);
    for (std::uint64_t seed = 5; seed < 7; ++seed) EXPECT_EQ(used_after_reload(seed), first);
    expect_equal(json::parse(post("/v1/predict", file).body).at("predictions").at(0),
                 predicted(path, file, precision), random_model_info("resnet18").classes);
  }
}

TEST_F(ServiceTest, Page_AllowsItsOwnScriptOnly) {
  start({add_model("photos", "cnn")});
  const ClientResponse page = get("/");
  EXPECT_EQ(page.status, 200);
  const std::string policy = page.fields.at("content-security-policy");
  EXPECT_TRUE(policy.starts_with("default-src 'none'; script-src 'sha256-")) << policy;
  EXPECT_EQ(policy.find("unsafe"), std::string::npos);
  for (const char* const foreign : {"http://", "https://", "src=\"", "style=\"", "onclick", "innerHTML"})
    EXPECT_EQ(page.body.find(foreign), std::string::npos) << foreign;
  EXPECT_EQ(get("/healthz").body, "{\"status\":\"ok\"}\n");
}

TEST(PolicyHash, OfAKnownText) {  // echo -n abc | openssl dgst -sha256 -binary | base64
  EXPECT_EQ(policy_hash("<script>abc</script>", "script"),
            "'sha256-ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0='");
}

TEST(ModelChoice, Names_ComeFromThePathOrTheUser) {
  const TempFolder folder;
  std::filesystem::create_directories(folder / "runs.d/plates-1");
  put_bytes(folder / "runs.d/plates-1/best.safetensors", "");
  const std::string run = (folder / "runs.d/plates-1").string();
  EXPECT_EQ(parse_model_choice(run).name, "plates-1");
  EXPECT_EQ(parse_model_choice(run + "/").name, "plates-1");
  EXPECT_EQ(parse_model_choice(run + "/best.safetensors").name, "plates-1");
  EXPECT_EQ(parse_model_choice("a/model.safetensors").name, "model");
  EXPECT_EQ(parse_model_choice("mine=a/b=c").name, "mine");
  EXPECT_EQ(parse_model_choice("mine=a/b=c").path, "a/b=c");
  for (const char* const bad : {"", "=a", "a=", "a\nb=c"})
    EXPECT_TRUE(error_text([&] {
                  parse_model_choice(bad);
                }).starts_with("[serve] expected a model as PATH or NAME=PATH"))
        << bad;
}

TEST(PredictionServiceOf, DecodersThatCannotBeConfined_AreRefused) {
  const TempFolder folder;
  save_random_model(folder / "m.safetensors", "mlp");
  const auto start_error = [&](const std::string& decoder_program) {
    return error_text([&] {
      PredictionService service({parse_model_choice((folder / "m.safetensors").string())},
                                {.decoders = 2, .decoder_program = decoder_program});
    });
  };
  EXPECT_EQ(start_error("/bin/true"),
            "[decode] the processes that decode images do not work here: its decoder crashed");
  if (!can_drop_capabilities()) GTEST_SKIP() << "the rest only for root";
  without_capabilities([&] {
    EXPECT_TRUE(start_error(program_file)
                    .starts_with("[decode] cannot confine the processes that decode images: root cannot "
                                 "become another user here: Operation not permitted; run as another user"));
  });
}

TEST(PredictionServiceOf, Tf32OnTheCpu_IsRefusedBeforeModelsAreLoaded) {
  EXPECT_EQ(error_text([] {
              PredictionService service({parse_model_choice("none")}, {.precision = MatmulPrecision::tf32});
            }),
            "[serve] expected precision fp32 or bf16 on the CPU, got tf32");
}

TEST(PredictionServiceOf, EqualNames_AreRefused) {
  const TempFolder folder;
  save_random_model(folder / "m.safetensors", "mlp");
  const ModelChoice choice = parse_model_choice((folder / "m.safetensors").string());
  EXPECT_EQ(error_text([&] {
              PredictionService service({choice, choice}, {});
            }),
            "[serve] expected models of different names, got 'm' twice: NAME=PATH gives another name");
}

}  // namespace
}  // namespace tandem
