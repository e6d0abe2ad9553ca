// The live page's server on run folders that the test writes; it looks at them when the test says so.
#include "tandem/serve/run_service.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "tandem/serve/http_server.h"
#include "tests/files/test_files.h"
#include "tests/serve/http_client.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr const char* log_header =
    "epoch,train_loss,train_accuracy,val_loss,val_accuracy,learning_rate,seconds,samples_per_second,"
    "waited_seconds\n";
constexpr double now = 1e9;

class RunServiceTest : public testing::Test {
 protected:
  void add_run(const std::string& name,
               const std::string& config = "data = \"digits\"\nmodel = \"cnn\"\nepochs = 3\n") {
    fs::create_directories(runs_ / name);
    put_bytes(runs_ / name / "config.toml", config);
    append(name, "log.csv", log_header);
  }
  void append(const std::string& name, const std::string& file, const std::string& text) {
    std::ofstream(runs_ / name / file, std::ios::app | std::ios::binary) << text;
  }
  void start(RunServiceOptions options = {}) {
    fs::create_directories(runs_);
    service_ = std::make_unique<RunService>(std::vector{runs_.string()}, options);
    ListenSocket socket(parse_listen_address("127.0.0.1:0"));
    site_ = std::make_unique<Site>(service_->routes(), site_rules(socket.address(), {}, ""));
    server_ = std::make_unique<HttpServer>(
        std::move(socket),
        HttpHandlers{
            .check = [this](const HttpRequest& request) { return site_->check(request); },
            .handle = [this](HttpRequest request,
                             HttpReply reply) { site_->handle(std::move(request), std::move(reply)); }});
    thread_ = std::thread([this] { server_->run(); });
  }
  ~RunServiceTest() override {
    if (!thread_.joinable()) return;
    server_->stop();
    server_->stop();
    thread_.join();
  }
  HttpClient client() const { return HttpClient(server_->address()); }
  ClientResponse ask(const std::string& target) const { return client().ask(get_request(target)); }
  json list() const { return json::parse(ask("/v1/runs").body).at("runs"); }
  std::string report_of(int id) const {
    const json address = json::parse(ask("/v1/run?id=" + std::to_string(id)).body).at("report");
    return address.is_null() ? "" : address.get<std::string>();
  }
  // The answer of a request that the reading thread gives.
  ClientResponse ask_and_turn(const std::string& target) {
    HttpClient one = client();
    one.write(get_request(target));
    ClientResponse response;
    std::atomic<bool> done{false};
    std::thread reader([&] {
      response = one.read();
      done = true;
    });
    while (!done) service_->turn(now);
    reader.join();
    return response;
  }

  TempFolder folder_;
  fs::path runs_ = folder_ / "runs";
  std::unique_ptr<RunService> service_;
  std::unique_ptr<Site> site_;
  std::unique_ptr<HttpServer> server_;
  std::thread thread_;
};

TEST_F(RunServiceTest, EmptyFolder_HasAnEmptyListUntilARunComes) {
  start();
  service_->turn(now);
  EXPECT_EQ(list(), json::array());
  add_run("first");
  service_->turn(now);
  ASSERT_EQ(list().size(), 1u);
  EXPECT_EQ(list()[0].at("model"), "cnn");
  EXPECT_EQ(list()[0].at("name"), "first");
}

TEST_F(RunServiceTest, Details_HaveCurvesAndOptions) {
  add_run("one");
  append("one", "log.csv", "1,2.5,0.25,2.25,0.5,0.1,1.5,100,0.1\n2,1.5,nan,1.25,0.75,0.1,1.5,120,0.1\n");
  start();
  service_->turn(now);
  const json run = list().at(0);
  EXPECT_EQ(run.at("epochs_done"), 2);
  EXPECT_EQ(run.at("best_accuracy"), 0.75);
  EXPECT_EQ(run.at("best_epoch"), 2);
  EXPECT_EQ(run.at("waited_share"), nullptr);
  const json details = json::parse(ask("/v1/run?id=" + run.at("id").dump()).body);
  EXPECT_EQ(details.at("curves").at("train_loss"), json::parse("[[1, 2.5], [2, 1.5]]"));
  EXPECT_EQ(details.at("curves").at("train_accuracy"), json::parse("[[1, 0.25]]"));
  EXPECT_EQ(details.at("config").at(1), json::parse(R"(["model", "cnn"])"));
  EXPECT_EQ(details.at("report"), nullptr);
}

TEST_F(RunServiceTest, LongCurves_AreThinnedAndKeepTheirPeak) {
  add_run("one");
  std::string rows =
      "step,epoch,loss,learning_rate,samples_per_second,waited_share,memory_mb,device_memory_mb\n";
  for (int step = 1; step <= 20000; ++step)
    rows += std::to_string(step) + ",1," + (step == 12345 ? "99" : "1") + ",0.1,100,0,10,0\n";
  append("one", "steps.csv", rows);
  start();
  service_->turn(now);
  const json points = json::parse(ask("/v1/run?id=1").body).at("steps").at("loss");
  EXPECT_LE(points.size(), 1201u);
  EXPECT_EQ(std::ranges::count(points, json::parse("[12345, 99]")), 1);
  const json curves = json::parse(ask("/v1/run?id=1").body).at("steps");
  EXPECT_EQ(curves.at("memory_mb").at(0), json::parse("[1, 10]"));
  EXPECT_EQ(curves.at("waited_share").back(), json::parse("[20000, 0]"));
  EXPECT_EQ(curves.at("device_memory_mb").back(), json::parse("[20000, 0]"));
}

TEST_F(RunServiceTest, OtherIdsThanThoseOfTheList_AreNotFound) {
  add_run("one");
  start();
  service_->turn(now);
  for (const char* const query :
       {"", "?id=", "?id=0", "?id=2", "?id=-1", "?id=1.5", "?id=99999999999", "?id=../one", "?id=..%2Fone",
        "?id=%2Fetc%2Fpasswd", "?id=1&id=1", "?path=one", "?id=1%00"})
    for (const char* const path : {"/v1/run", "/v1/report", "/v1/batch", "/v1/timeline"})
      EXPECT_EQ(ask(std::string(path) + query).status, 404) << path << query;
  for (const char* const path :
       {"/v1/runs/one", "/v1/../../etc/passwd", "/runs/one/config.toml", "/report.html"})
    EXPECT_EQ(ask(path).status, 404) << path;
}

TEST_F(RunServiceTest, Events_TellWhatChanges) {
  add_run("one");
  start();
  service_->turn(now);
  HttpClient page = client();
  page.write(get_request("/v1/events"));
  EXPECT_EQ(page.read().fields.at("content-type"), "text/event-stream");
  const auto epochs = [&] {
    const std::string event = page.read_until("\n\n");
    EXPECT_EQ(event.substr(0, 6), "data: ");
    return json::parse(event.substr(6)).at("runs").at(0).at("epochs_done").get<int>();
  };
  EXPECT_EQ(epochs(), 0);
  service_->turn(now);  // nothing new: no event
  append("one", "log.csv", "1,2.5,0.25,2.25,0.5,0.1,1.5,100,0.1\n2,1.5,0.5");
  service_->turn(now);
  EXPECT_EQ(epochs(), 1);  // the second line is not complete
  append("one", "log.csv", ",1.25,0.75,0.1,1.5,120,0.1\n");
  service_->turn(now);
  EXPECT_EQ(epochs(), 2);
}

TEST_F(RunServiceTest, MoreStreamsThanAllowed_AreRefusedUntilOneEnds) {
  add_run("one");
  start({.max_streams = 1});
  {
    HttpClient page = client();
    page.write(get_request("/v1/events"));
    EXPECT_EQ(page.read().status, 200);
    EXPECT_EQ(ask("/v1/events").status, 503);
  }
  while (server_->connection_count() > 0) std::this_thread::yield();
  HttpClient page = client();
  page.write(get_request("/v1/events"));
  EXPECT_EQ(page.read().status, 200);
}

TEST_F(RunServiceTest, Report_IsServedWithoutScripts) {
  add_run("one");
  start();
  service_->turn(now);
  EXPECT_EQ(report_of(1), "");
  put_bytes(runs_ / "one" / "report.html", "<h1>Report</h1>");
  service_->turn(now);
  const ClientResponse report = ask_and_turn(report_of(1));
  EXPECT_TRUE(report.body.starts_with("<h1>Report</h1><style>nav,.curves,")) << report.body;
  const std::string policy = report.fields.at("content-security-policy");
  EXPECT_EQ(policy.substr(0, 28), "sandbox; default-src 'none';");
  EXPECT_EQ(policy.find("script-src"), std::string::npos);
}

TEST_F(RunServiceTest, ReportWithoutItsKey_IsNotServed) {
  add_run("one");
  put_bytes(runs_ / "one" / "report.html", "<h1>Report</h1>");
  start();
  service_->turn(now);
  const std::string key = report_of(1).substr(report_of(1).find("key=") + 4, 32);
  EXPECT_EQ(ask_and_turn("/v1/report?id=1&key=" + key).status, 200);
  std::string other = key;
  other.back() = other.back() == '0' ? '1' : '0';
  for (const std::string& query :
       std::vector<std::string>{"?id=1", "?id=1&key=", "?id=1&key=" + other, "?id=1&key=" + key.substr(1),
                                "?key=" + key, "?id=2&key=" + key, "?id=..&key=" + key})
    EXPECT_EQ(ask("/v1/report" + query).status, 404) << query;
}

TEST_F(RunServiceTest, ReportThatIsALinkOrTooLarge_IsNotServed) {
  put_bytes(folder_ / "secret", "secret");
  add_run("one");
  fs::create_symlink(folder_ / "secret", runs_ / "one" / "report.html");
  add_run("two");
  put_bytes(runs_ / "two" / "report.html", std::string(2000, 'x'));
  start({.max_report_bytes = 1000});
  service_->turn(now);
  for (const json& run : list()) {
    const ClientResponse answer = ask_and_turn(report_of(run.at("id")));
    EXPECT_EQ(answer.status, 404) << run.at("name");
    EXPECT_EQ(answer.body.find("secret"), std::string::npos);
  }
}

TEST_F(RunServiceTest, FirstImagesAndTimeline_AreServedWhenTheyAreThere) {
  add_run("one");
  start();
  service_->turn(now);
  const auto details = [&] { return json::parse(ask("/v1/run?id=1").body); };
  EXPECT_EQ(details().at("batch_sheet"), nullptr);
  EXPECT_EQ(details().at("timeline_address"), nullptr);
  EXPECT_EQ(ask_and_turn("/v1/batch?id=1").status, 404);
  put_bytes(runs_ / "one" / "batch.jpg", "picture");
  put_bytes(runs_ / "one" / "timeline.json", "{\"lanes\": []}");
  service_->turn(now);
  const ClientResponse picture = ask_and_turn(details().at("batch_sheet"));
  EXPECT_EQ(picture.body, "picture");
  EXPECT_EQ(picture.fields.at("content-type"), "image/jpeg");
  EXPECT_EQ(picture.fields.at("x-content-type-options"), "nosniff");
  const ClientResponse timeline = ask_and_turn(details().at("timeline_address"));
  EXPECT_EQ(timeline.body, "{\"lanes\": []}");
  EXPECT_EQ(timeline.fields.at("content-type"), "application/json");
  fs::remove(runs_ / "one" / "batch.jpg");
  service_->turn(now);
  EXPECT_EQ(details().at("batch_sheet"), nullptr);
}

TEST_F(RunServiceTest, FilesThatAreLinksOrTooLarge_AreNotServed) {
  put_bytes(folder_ / "secret", "secret");
  add_run("one");
  fs::create_symlink(folder_ / "secret", runs_ / "one" / "batch.jpg");
  put_bytes(runs_ / "one" / "timeline.json", std::string(2000, ' '));
  start({.max_file_bytes = 1000});
  service_->turn(now);
  for (const char* const path : {"/v1/batch?id=1", "/v1/timeline?id=1"}) {
    const ClientResponse answer = ask_and_turn(path);
    EXPECT_EQ(answer.status, 404) << path;
    EXPECT_EQ(answer.body.find("secret"), std::string::npos);
  }
}

TEST_F(RunServiceTest, FolderThatDisappears_IsSaid) {
  add_run("one");
  start();
  service_->turn(now);
  fs::remove_all(runs_);
  service_->turn(now);
  ASSERT_EQ(list().size(), 1u);
  EXPECT_EQ(list()[0].at("phase"), "gone");
}

TEST_F(RunServiceTest, RoutesOfRuns_NeedTheTokenOrAKey) {
  start();
  for (const Route& route : service_->routes())
    EXPECT_EQ(route.access, route.path == "/" || route.path == "/healthz" ? Access::open : Access::token)
        << route.path;
}

TEST_F(RunServiceTest, Page_AllowsItsOwnScriptOnly) {
  start();
  const ClientResponse page = ask("/");
  EXPECT_NE(page.body.find("<h1>Tandem runs</h1>"), std::string::npos);
  EXPECT_EQ(page.body.find("http://"), page.body.find("http://www.w3.org/2000/svg"));
  EXPECT_EQ(page.body.find("https://"), std::string::npos);
  EXPECT_NE(page.fields.at("content-security-policy").find("script-src 'sha256-"), std::string::npos);
}

TEST_F(RunServiceTest, FileInsteadOfAFolder_IsRefused) {
  put_bytes(folder_ / "file", "");
  EXPECT_THROW(RunService({(folder_ / "file").string()}), Error);
  EXPECT_THROW(RunService({(folder_ / "missing").string()}), Error);
}

}  // namespace
}  // namespace tandem
