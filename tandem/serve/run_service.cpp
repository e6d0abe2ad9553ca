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
#include "tandem/report/curve_json.h"
#include "tandem/report/page.h"
#include "tandem/report/run_page.h"
#include "tandem/serve/page.h"
#include "tandem/text/parse_number.h"
#include "tandem/text/utf8.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;
using Query = std::vector<std::pair<std::string, std::string>>;

std::string dump(const Json& json) {
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// JSON has no NaN: null is what was not measured.
Json number(double value) {
  return std::isfinite(value) ? Json(value) : Json(nullptr);
}

Json summary_json(const WatchedRun& run, int id, const std::string& name, std::int64_t version) {
  const StepRecord& step = run.last_step;
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
          {"cpu_cores", number(step.cpu_cores)},
          {"memory_mb", number(step.memory_mb)},
          {"device_memory_mb", number(step.device_memory_mb)},
          {"gpu_share", number(step.gpu_share)},
          {"gpu_memory_mb", number(step.gpu_memory_mb)},
          {"done_share", number(run.done_share())},
          {"seconds_left", number(run.seconds_left())},
          {"changed_at", run.changed_at}};
}

Json details_json(const WatchedRun& run, Json json) {
  json["validated_on"] = run.status.validated_on;
  json["test_accuracy"] = number(run.status.test_accuracy.value_or(not_measured));
  json["tested_on"] = run.status.tested_on;
  json["message"] = run.status.message;
  json["warnings"] = run.status.warnings;
  json["config"] = Json::array();
  for (const auto& [key, value] : run.config) json["config"].push_back({key, value});
  json["curves"] = {{"train_loss", curve_json(run.train_loss)},
                    {"val_loss", curve_json(run.val_loss)},
                    {"train_accuracy", curve_json(run.train_accuracy)},
                    {"val_accuracy", curve_json(run.val_accuracy)}};
  json["steps"] = step_curves_json(run.steps);
  return json;
}

// The whole of a regular file that is not a link; nullopt: it cannot be read, or has more bytes.
std::optional<std::string> read_whole(const fs::path& path, std::int64_t max_bytes) {
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

// The page around a report has these parts too, and live.
constexpr const char* frame_style =
    "<style>nav,.curves,section:has(.sheet),section:has(#timeline){display:none}</style>\n";

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

bool RunService::SeenFile::has_changed(const fs::path& path) {
  std::error_code error;
  const fs::file_time_type now = fs::last_write_time(path, error);
  const bool changed = exists == static_cast<bool>(error) || (exists && time != now);
  exists = !error;
  time = exists ? now : fs::file_time_type{};
  return changed;
}

std::string RunService::SeenFile::version() const {
  return exists ? std::to_string(time.time_since_epoch().count()) : std::string();
}

bool RunService::poll_run(Run& run, double now) {
  bool changed = run.version == 0;
  do {
    changed |= run.reader->poll(now);
  } while (run.reader->has_more());
  const RunFolder folder{run.reader->folder()};
  changed |= run.report.has_changed(folder.report());
  changed |= run.batch_sheet.has_changed(folder.batch_sheet());
  changed |= run.timeline.has_changed(folder.timeline());
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
        const auto address = [&run = run](const char* route, const SeenFile& file,
                                          const std::string& key = {}) {
          return file.exists ? Json(fmt::format("/v1/{}?id={}{}&time={}", route, run.id, key, file.version()))
                             : Json(nullptr);
        };
        Json details = details_json(run.reader->run(), std::move(summary));
        details["report"] = address("report", run.report, "&key=" + report_key_);
        details["batch_sheet"] = address("batch", run.batch_sheet);
        details["timeline_address"] = address("timeline", run.timeline);
        run.details = std::make_shared<const std::string>(dump(details));
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
  later([this, id = *id](HttpReply kept) { send_report(id, std::move(kept)); }, std::move(reply));
}

void RunService::answer_file(const HttpRequest& request, fs::path (RunFolder::*file)() const,
                             const char* type, HttpReply reply) {
  const std::optional<int> id = id_of(query_of(request));
  if (!id || !snapshot()->details.contains(*id)) return reply.send(no_such_run());
  later([this, id = *id, file, type](HttpReply kept) { send_file(id, file, type, std::move(kept)); },
        std::move(reply));
}

// Done by the thread that reads.
void RunService::later(std::function<void(HttpReply)> job, HttpReply reply) {
  const auto kept = std::make_shared<HttpReply>(std::move(reply));
  {
    const std::lock_guard lock(mutex_);
    jobs_.emplace_back([job = std::move(job), kept] { job(std::move(*kept)); });
  }
  changed_.notify_all();
}

void RunService::send_file(int id, fs::path (RunFolder::*file)() const, const char* type, HttpReply reply) {
  for (const auto& [path, run] : runs_) {
    if (run.id != id) continue;
    std::optional<std::string> bytes = read_whole((RunFolder{path}.*file)(), options_.max_file_bytes);
    if (bytes) return reply.send({.content_type = type, .body = std::move(*bytes)});
  }
  reply.send(error_response(404, "the run has no such file"));
}

void RunService::send_report(int id, HttpReply reply) {
  for (const auto& [path, run] : runs_) {
    if (run.id != id) continue;
    std::optional<std::string> text = read_whole(RunFolder{path}.report(), options_.max_report_bytes);
    if (!text) break;
    text->insert(std::min(text->find("</head>"), text->size()), frame_style);
    // A folder may come from elsewhere: whatever its report has, no script of it runs.
    return reply.send(
        {.content_type = "text/html; charset=utf-8",
         .body = std::move(*text),
         .fields = {{"Content-Security-Policy",
                     "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data: blob:; "
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
      {.path = "/v1/batch",
       .access = Access::token,
       .handle =
           [this](const HttpRequest& request, HttpReply reply) {
             answer_file(request, &RunFolder::batch_sheet, "image/jpeg", std::move(reply));
           }},
      {.path = "/v1/timeline",
       .access = Access::token,
       .handle =
           [this](const HttpRequest& request, HttpReply reply) {
             answer_file(request, &RunFolder::timeline, "application/json", std::move(reply));
           }},
      {.path = "/v1/events", .access = Access::token, .handle = [this](const HttpRequest&, HttpReply reply) {
         open_stream(std::move(reply));
       }}};
}

HttpResponse watch_page() {
  Page page{.title = "Tandem runs", .lead_html = std::string(embedded_watch_list)};
  page.head_html = "<link rel=\"icon\" href=\"data:,\">\n";
  page.style = std::string(embedded_run_style) + std::string(embedded_watch_style);
  page.script =
      std::string(embedded_charts) + std::string(embedded_timeline) + std::string(embedded_watch_script);
  page.has_contents = false;
  const auto add = [&](const char* title, std::string body_html) {
    page.sections.push_back({.title = title, .body_html = std::move(body_html), .hidden = true});
  };
  add("Curves", curves_html(""));
  add("What the network saw", "<div id=\"batches\"></div>\n");
  add("Timeline", timeline_html());
  add("Warnings", "<div id=\"warnings\"></div>\n");
  add("Options",
      "<div class=\"bar\" id=\"differences-bar\"><span><input id=\"differences\" type=\"checkbox\"> <label "
      "for=\"differences\">Only what differs</label></span></div>\n" +
          scroll_box("Options",
                     "<table><thead><tr id=\"option-columns\"></tr></thead><tbody "
                     "id=\"options\"></tbody></table>"));
  add("Report: confusion matrix and pictures", "<div id=\"reports\"></div>\n");
  std::string html = html_page(page);
  const std::string policy = fmt::format(
      "default-src 'none'; script-src {}; style-src {}; connect-src 'self'; frame-src 'self'; img-src data: "
      "blob:; "
      "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
      policy_hash(html, "script"), policy_hash(html, "style"));
  return {.content_type = "text/html; charset=utf-8",
          .body = std::move(html),
          .fields = {{"Content-Security-Policy", policy}}};
}

}  // namespace tandem
