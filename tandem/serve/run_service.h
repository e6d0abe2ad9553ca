// The live page of `tandem watch --http`: the runs below some folders, read while they go on, as a list, as
// curves, and as a stream of events. Nothing in the folders is changed. A client names a run by its number in
// the list, never by a path.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <filesystem>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "tandem/serve/http_reply.h"
#include "tandem/serve/site.h"
#include "tandem/train/watch/run_reader.h"

namespace tandem {

struct RunServiceOptions {
  std::size_t max_runs = 200;    // of a folder: the newest
  std::size_t max_streams = 64;  // of events at a time; more get status 503
  std::int64_t max_report_bytes = std::int64_t{256} << 20;
  std::int64_t max_file_bytes = std::int64_t{16} << 20;  // of the first training images, and of the timeline
  std::chrono::milliseconds interval{500};               // between two looks at the folders
};

// All files are read by one thread of its own, so that a slow disk does not stop the event loop.
class RunService {
 public:
  // Run folders, or folders of runs. Throws Error if one is missing or not a folder.
  RunService(std::vector<std::string> paths, RunServiceOptions options = {});
  ~RunService();
  RunService(const RunService&) = delete;
  RunService& operator=(const RunService&) = delete;

  std::vector<Route> routes();

  // Begins to look at the folders at intervals.
  void start();
  // Looks at them once, at `now` seconds since 1970, and does what clients have asked for; for tests, instead
  // of start().
  void turn(double now);

 private:
  // A file of a run that is sent as it is.
  struct SeenFile {
    bool exists = false;
    std::filesystem::file_time_type time{};

    bool has_changed(const std::filesystem::path& path);
    std::string version() const;  // empty if it does not exist
  };
  struct Run {
    int id;
    std::string name;          // as in the list
    std::int64_t version = 0;  // counts changes
    std::unique_ptr<RunReader> reader;
    SeenFile report{}, batch_sheet{}, timeline{};
    std::shared_ptr<const std::string> details{};  // JSON of `details_version`
    std::int64_t details_version = 0;
  };
  // What the event loop reads, as JSON; written as a whole.
  struct Snapshot {
    std::string list;
    std::map<int, std::shared_ptr<const std::string>> details;  // by number
  };

  void run_thread();
  void find_new_runs();
  bool poll_run(Run& run, double now);
  void publish(bool changed);
  std::shared_ptr<const Snapshot> snapshot() const;
  void send_report(int id, HttpReply reply);
  void send_file(int id, std::filesystem::path (RunFolder::*file)() const, const char* type, HttpReply reply);
  void later(std::function<void(HttpReply)> job, HttpReply reply);
  void answer_run(const HttpRequest& request, HttpReply reply);
  void answer_report(const HttpRequest& request, HttpReply reply);
  void answer_file(const HttpRequest& request, std::filesystem::path (RunFolder::*file)() const,
                   const char* type, HttpReply reply);
  void open_stream(HttpReply reply);

  std::vector<std::string> paths_;
  RunServiceOptions options_;
  std::map<std::filesystem::path, Run> runs_;  // of the thread that reads
  int last_id_ = 0;
  std::string report_key_;  // a secret that the details of a run tell: frames cannot send a token

  mutable std::mutex mutex_;  // of what follows
  std::condition_variable changed_;
  std::shared_ptr<const Snapshot> snapshot_;
  std::list<HttpStream> streams_;
  std::deque<std::function<void()>> jobs_;
  bool is_ending_ = false;

  std::thread thread_;
};

// The page itself, with a policy that allows its own script only.
HttpResponse watch_page();

}  // namespace tandem
