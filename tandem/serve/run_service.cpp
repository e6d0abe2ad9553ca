#include "tandem/serve/run_service.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>
#include <utility>

#include "tandem/core/check.h"
#include "tandem/process/descriptor.h"
#include "tandem/serve/page.h"
#include "tandem/text/parse_number.h"
#include "tandem/text/utf8.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;
using Query = std::vector<std::pair<std::string, std::string>>;

constexpr std::size_t max_shown_buckets = 600;  // of a curve: about one per pixel

std::string dump(const Json& json) {
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// JSON has no NaN: null is what was not measured.
Json number(double value) {
  return std::isfinite(value) ? Json(value) : Json(nullptr);
}

// With six digits, which is more than a screen shows.
Json rounded(double value) {
  return std::isfinite(value) ? Json(std::stod(fmt::format("{:.6g}", value))) : Json(nullptr);
}

Json points(const Curve& curve) {
  Curve shown(max_shown_buckets);
  for (const CurvePoint& point : curve.points()) shown.add(point.x, point.y);
  std::vector<CurvePoint> kept = shown.points();
  if (!kept.empty() && kept.back().x < curve.last()->x) kept.push_back(*curve.last());
  Json list = Json::array();
  for (const CurvePoint& point : kept) list.push_back({rounded(point.x), rounded(point.y)});
  return list;
}

Json summary_json(const WatchedRun& run, int id, const std::string& name, std::int64_t version) {
  const StepFigures& step = run.last_step;
  const double epoch_rate = run.last_epoch.samples_per_second;
  return {{"id", id},
          {"version", version},
          {"name", name},
          {"phase", name_of(run.phase)},
          {"data", run.data},
          {"model", run.model},
          {"device", run.status.device},
          {"epochs_done", run.epochs_done},
          {"epochs", run.status.epochs},
          {"best_accuracy", number(run.best_epoch.epoch > 0 ? run.best_epoch.val_accuracy : not_measured)},
          {"best_epoch", run.best_epoch.epoch},
          {"loss", number(step.step > 0 ? step.loss : run.last_epoch.train_loss)},
          {"samples_per_second",
           number(std::isfinite(step.samples_per_second) ? step.samples_per_second : epoch_rate)},
          {"waited_share", number(step.waited_share)},
          {"memory_mb", number(step.memory_mb)},
          {"device_memory_mb", number(step.device_memory_mb)},
          {"done_share", number(run.done_share())},
          {"seconds_left", number(run.seconds_left())},
          {"changed_at", run.changed_at}};
}

Json details_json(const WatchedRun& run, Json json, const std::string& report_address) {
  json["validated_on"] = run.status.validated_on;
  json["test_accuracy"] = number(run.status.test_accuracy.value_or(not_measured));
  json["tested_on"] = run.status.tested_on;
  json["message"] = run.status.message;
  json["warnings"] = run.status.warnings;
  json["config"] = Json::array();
  for (const auto& [key, value] : run.config) json["config"].push_back({key, value});
  json["report"] = report_address.empty() ? Json(nullptr) : Json(report_address);
  json["curves"] = {{"train_loss", points(run.train_loss)},
                    {"val_loss", points(run.val_loss)},
                    {"train_accuracy", points(run.train_accuracy)},
                    {"val_accuracy", points(run.val_accuracy)},
                    {"step_loss", points(run.step_loss)},
                    {"learning_rate", points(run.learning_rate)},
                    {"step_samples_per_second", points(run.samples_per_second)},
                    {"waited_share", points(run.waited_share)},
                    {"memory_mb", points(run.memory_mb)},
                    {"device_memory_mb", points(run.device_memory_mb)}};
  return json;
}

// The whole of a regular file that is not a link; nullopt: it cannot be read, or has more bytes.
std::optional<std::string> read_report(const fs::path& path, std::int64_t max_bytes) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat facts {};
  if (!file || ::fstat(file.get(), &facts) != 0 || !S_ISREG(facts.st_mode) || facts.st_size > max_bytes)
    return std::nullopt;
  std::string text(static_cast<std::size_t>(facts.st_size), '\0');
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t count = ::read(file.get(), text.data() + done, text.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    done += static_cast<std::size_t>(count);
  }
  text.resize(done);
  return text;
}

// The numbered run of a query like "id=3&key=…"; nullopt without a number.
std::optional<int> id_of(const Query& query) {
  const auto found = std::ranges::find(query, "id", &Query::value_type::first);
  return found == query.end() ? std::nullopt : parse_number<int>(found->second);
}

Query query_of(const HttpRequest& request) {
  return parse_query(request.query).value_or(Query{});
}

// 128 random bits.
std::string random_key() {
  std::random_device source;
  return fmt::format("{:08x}{:08x}{:08x}{:08x}", source(), source(), source(), source());
}

HttpResponse no_such_run() {
  return error_response(404, "expected ?id=N with the number of a run in /v1/runs");
}

std::string event_of(const std::string& list) {
  return fmt::format("data: {}\n\n", list);
}

}  // namespace

RunService::RunService(std::vector<std::string> paths, RunServiceOptions options)
    : paths_(std::move(paths)), options_(options), report_key_(random_key()) {
  for (const std::string& path : paths_)
    check(fs::is_directory(path), "[watch] {}: expected a folder of runs", path);
  publish(true);
}

RunService::~RunService() {
  {
    const std::lock_guard lock(mutex_);
    is_ending_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void RunService::start() {
  thread_ = std::thread([this] { run_thread(); });
}

void RunService::run_thread() {
  while (true) {
    turn(std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count());
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, options_.interval, [this] { return is_ending_ || !jobs_.empty(); });
    if (is_ending_) return;
  }
}

void RunService::turn(double now) {
  find_new_runs();
  bool changed = false;
  for (auto& [path, run] : runs_) changed |= poll_run(run, now);
  publish(changed);
  while (true) {
    std::function<void()> job;
    {
      const std::lock_guard lock(mutex_);
      if (jobs_.empty()) return;
      job = std::move(jobs_.front());
      jobs_.pop_front();
    }
    job();
  }
}

// A run that was found stays in the list, also when its folder has gone.
void RunService::find_new_runs() {
  for (const std::string& path : paths_) try {
      for (const fs::path& folder : find_runs({&path, 1}, options_.max_runs)) {
        if (runs_.contains(folder)) continue;
        Run run{.id = ++last_id_, .name = {}, .reader = std::make_unique<RunReader>(folder)};
        // Below the only folder its own name says enough.
        run.name = paths_.size() == 1 && folder != path ? one_line(folder.filename().string())
                                                        : run.reader->run().name;
        runs_.emplace(folder, std::move(run));
      }
    } catch (const Error&) {  // no runs yet, or no longer
    }
}

bool RunService::poll_run(Run& run, double now) {
  bool changed = run.version == 0;
  do {
    changed |= run.reader->poll(now);
  } while (run.reader->has_more());
  std::error_code error;
  const fs::path report = RunFolder{run.reader->folder()}.report();
  const fs::file_time_type time = fs::last_write_time(report, error);
  const bool has_report = !error;
  changed |= has_report != run.has_report || (has_report && time != run.report_time);
  run.has_report = has_report;
  run.report_time = has_report ? time : fs::file_time_type{};
  run.version += changed ? 1 : 0;
  return changed;
}

void RunService::publish(bool changed) {
  std::shared_ptr<const Snapshot> next;
  if (changed) {
    auto made = std::make_shared<Snapshot>();
    Json list{{"folder", paths_.size() == 1 ? paths_.front() : fmt::format("{} folders", paths_.size())},
              {"runs", Json::array()}};
    for (auto& [path, run] : runs_) {
      Json summary = summary_json(run.reader->run(), run.id, run.name, run.version);
      list["runs"].push_back(summary);
      if (std::exchange(run.details_version, run.version) != run.version) {
        std::string report;
        if (run.has_report)
          report = fmt::format("/v1/report?id={}&key={}&time={}", run.id, report_key_,
                               run.report_time.time_since_epoch().count());
        run.details = std::make_shared<const std::string>(
            dump(details_json(run.reader->run(), std::move(summary), report)));
      }
      made->details[run.id] = run.details;
    }
    made->list = dump(list);
    next = std::move(made);
  }
  const std::lock_guard lock(mutex_);
  if (next) snapshot_ = std::move(next);
  std::erase_if(streams_, [](const HttpStream& stream) { return !stream.is_open(); });
  if (changed)
    for (HttpStream& stream : streams_) stream.send(event_of(snapshot_->list));
}

std::shared_ptr<const RunService::Snapshot> RunService::snapshot() const {
  const std::lock_guard lock(mutex_);
  return snapshot_;
}

// ---- requests: called by the event loop, which must not wait for a disk ----

void RunService::answer_run(const HttpRequest& request, HttpReply reply) {
  const std::optional<int> id = id_of(query_of(request));
  const std::shared_ptr<const Snapshot> now = snapshot();
  const auto found = id ? now->details.find(*id) : now->details.end();
  reply.send(found == now->details.end() ? no_such_run() : HttpResponse{.body = *found->second});
}

void RunService::answer_report(const HttpRequest& request, HttpReply reply) {
  const Query query = query_of(request);
  const std::optional<int> id = id_of(query);
  const auto key = std::ranges::find(query, "key", &Query::value_type::first);
  if (!id || key == query.end() || !equal_in_constant_time(report_key_, key->second) ||
      !snapshot()->details.contains(*id))
    return reply.send(no_such_run());
  const auto kept = std::make_shared<HttpReply>(std::move(reply));
  {
    const std::lock_guard lock(mutex_);
    jobs_.emplace_back([this, id = *id, kept] { send_report(id, std::move(*kept)); });
  }
  changed_.notify_all();
}

void RunService::send_report(int id, HttpReply reply) {
  for (const auto& [path, run] : runs_) {
    if (run.id != id) continue;
    std::optional<std::string> text = read_report(RunFolder{path}.report(), options_.max_report_bytes);
    if (!text) break;
    // A folder may come from elsewhere: whatever its report has, no script of it runs.
    return reply.send({.content_type = "text/html; charset=utf-8",
                       .body = std::move(*text),
                       .fields = {{"Content-Security-Policy",
                                   "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; "
                                   "base-uri 'none'; form-action 'none'; frame-ancestors 'self'"}}});
  }
  reply.send(error_response(404, "the run has no report yet"));
}

void RunService::open_stream(HttpReply reply) {
  const std::lock_guard lock(mutex_);
  std::erase_if(streams_, [](const HttpStream& stream) { return !stream.is_open(); });
  if (streams_.size() >= options_.max_streams)
    return reply.send(error_response(503, "too many pages are open", {{"Retry-After", "30"}}));
  streams_.push_back(reply.begin({.content_type = "text/event-stream"}));
  streams_.back().send(event_of(snapshot_->list));
}

std::vector<Route> RunService::routes() {
  return {
      {.path = "/",
       .access = Access::open,
       .handle = [](const HttpRequest&, HttpReply reply) { reply.send(watch_page()); }},
      {.path = "/healthz",
       .access = Access::open,
       .handle = [](const HttpRequest&, HttpReply reply) { reply.send({.body = "{\"status\":\"ok\"}"}); }},
      {.path = "/v1/runs",
       .access = Access::token,
       .handle = [this](const HttpRequest&, HttpReply reply) { reply.send({.body = snapshot()->list}); }},
      {.path = "/v1/run",
       .access = Access::token,
       .handle = [this](const HttpRequest& request,
                        HttpReply reply) { answer_run(request, std::move(reply)); }},
      {.path = "/v1/report",
       .access = Access::token,
       .handle = [this](const HttpRequest& request,
                        HttpReply reply) { answer_report(request, std::move(reply)); }},
      {.path = "/v1/events", .access = Access::token, .handle = [this](const HttpRequest&, HttpReply reply) {
         open_stream(std::move(reply));
       }}};
}

HttpResponse watch_page() {
  return {.content_type = "text/html; charset=utf-8",
          .body = std::string(embedded_watch_page),
          .fields = {
              {"Content-Security-Policy",
               fmt::format(
                   "default-src 'none'; script-src {}; style-src {}; connect-src 'self'; frame-src "
                   "'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
                   policy_hash(embedded_watch_page, "script"), policy_hash(embedded_watch_page, "style"))}}};
}

}  // namespace tandem
