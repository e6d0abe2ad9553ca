#include "tandem/files/download.h"

#include <curl/curl.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <new>
#include <system_error>

#include "tandem/core/check.h"
#include "tandem/core/shared_library.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

// Shared by the callbacks of one transfer.
struct Transfer {
  int file = -1;
  std::uint64_t resumed_at = 0;  // size of the partial file before the transfer
  std::uint64_t written = 0;     // size of the partial file now
  bool too_long = false;
  int write_error = 0;
  const DownloadOptions* options = nullptr;

  ~Transfer() {
    if (file >= 0) ::close(file);
  }
};

// Returning less than the given size aborts the transfer.
std::size_t on_data(const char* bytes, std::size_t element_size, std::size_t count, void* context) {
  auto& transfer = *static_cast<Transfer*>(context);
  const std::size_t size = element_size * count;
  transfer.too_long = size > transfer.options->max_bytes - transfer.written;
  if (transfer.too_long) return 0;
  std::size_t done = 0;
  while (done < size) {
    const ssize_t got = ::write(transfer.file, bytes + done, size - done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      transfer.write_error = errno;
      return 0;
    }
    done += static_cast<std::size_t>(got);
    transfer.written += static_cast<std::uint64_t>(got);
  }
  return size;
}

int on_progress(void* context, curl_off_t total, curl_off_t, curl_off_t, curl_off_t) {
  const auto& transfer = *static_cast<const Transfer*>(context);
  if (transfer.options->on_progress)
    transfer.options->on_progress(transfer.written,
                                  total > 0 ? static_cast<std::uint64_t>(total) + transfer.resumed_at : 0);
  return 0;
}

struct Result {
  CURLcode code = CURLE_OK;
  long status = 0;
  std::string text;
};

// The functions of libcurl. It is opened for the first download: it loads thirty libraries more.
class Curl {
 public:
  static Curl& get() {
    static Curl functions;  // initialized before any thread uses it, as libcurl requires
    return functions;
  }

  template <class Value>
  void set(CURL* handle, CURLoption option, Value value) const {
    const CURLcode code = setopt_(handle, option, value);
    check(code == CURLE_OK, "[download] {}: {}", library_name, error_text(code));
  }

  decltype(&curl_easy_init) init = function<decltype(init)>("curl_easy_init");
  decltype(&curl_easy_cleanup) cleanup = function<decltype(cleanup)>("curl_easy_cleanup");
  decltype(&curl_easy_perform) perform = function<decltype(perform)>("curl_easy_perform");
  decltype(&curl_easy_getinfo) getinfo = function<decltype(getinfo)>("curl_easy_getinfo");
  decltype(&curl_easy_strerror) error_text = function<decltype(error_text)>("curl_easy_strerror");

 private:
  static constexpr const char* library_name = "libcurl 4";

  Curl() {
    const auto global_init = function<decltype(&curl_global_init)>("curl_global_init");
    const CURLcode code = global_init(CURL_GLOBAL_DEFAULT);
    check(code == CURLE_OK, "[download] {}: {}", library_name, error_text(code));
  }

  template <class Function>
  static Function function(const char* symbol) {
    static SharedLibrary library(
        {.name = library_name, .files = {"libcurl.so.4", "libcurl-gnutls.so.4"}, .folders = {}});
    return library.function<Function>(symbol);
  }

  decltype(&curl_easy_setopt) setopt_ = function<decltype(setopt_)>("curl_easy_setopt");
};

// A server that sends a byte now and then must not hold the program for days. What has come is kept: the next
// attempt resumes.
long timeout_of(const DownloadOptions& options) {
  constexpr std::uint64_t min_rate = 16'000, start_s = 60, max_s = 24 * 3600;
  if (options.timeout_s > 0) return options.timeout_s;
  return static_cast<long>(std::min(start_s + options.max_bytes / min_rate, max_s));
}

Result transfer_once(const std::string& address, Transfer& transfer) {
  const Curl& library = Curl::get();
  const std::unique_ptr<CURL, decltype(&curl_easy_cleanup)> handle(library.init(), library.cleanup);
  if (handle == nullptr) throw std::bad_alloc();
  CURL* const curl = handle.get();
  char text[CURL_ERROR_SIZE] = "";
  const DownloadOptions& options = *transfer.options;
  library.set(curl, CURLOPT_URL, address.c_str());
#if LIBCURL_VERSION_NUM >= 0x075500
  library.set(curl, CURLOPT_PROTOCOLS_STR, "http,https");
  library.set(curl, CURLOPT_REDIR_PROTOCOLS_STR, "http,https");
#else
  library.set(curl, CURLOPT_PROTOCOLS, CURLPROTO_HTTP | CURLPROTO_HTTPS);
  library.set(curl, CURLOPT_REDIR_PROTOCOLS, CURLPROTO_HTTP | CURLPROTO_HTTPS);
#endif
  library.set(curl, CURLOPT_FOLLOWLOCATION, 1L);
  library.set(curl, CURLOPT_MAXREDIRS, 8L);
  library.set(curl, CURLOPT_FAILONERROR, 1L);
  library.set(curl, CURLOPT_NOSIGNAL, 1L);
  library.set(curl, CURLOPT_USERAGENT, "tandem");
  library.set(curl, CURLOPT_CONNECTTIMEOUT, long{options.connect_timeout_s});
#if LIBCURL_VERSION_NUM >= 0x075700
  // After a timeout, do not wait for a name server that does not answer.
  library.set(curl, CURLOPT_QUICK_EXIT, 1L);
#endif
  library.set(curl, CURLOPT_TIMEOUT, timeout_of(options));
  library.set(curl, CURLOPT_LOW_SPEED_LIMIT, 100L);
  library.set(curl, CURLOPT_LOW_SPEED_TIME, long{options.stall_timeout_s});
  library.set(curl, CURLOPT_RESUME_FROM_LARGE, static_cast<curl_off_t>(transfer.resumed_at));
  library.set(curl, CURLOPT_WRITEFUNCTION, on_data);
  library.set(curl, CURLOPT_WRITEDATA, &transfer);
  library.set(curl, CURLOPT_NOPROGRESS, 0L);
  library.set(curl, CURLOPT_XFERINFOFUNCTION, on_progress);
  library.set(curl, CURLOPT_XFERINFODATA, &transfer);
  library.set(curl, CURLOPT_ERRORBUFFER, text);
  Result result;
  result.code = library.perform(curl);
  library.getinfo(curl, CURLINFO_RESPONSE_CODE, &result.status);
  result.text = text[0] != '\0' ? text : library.error_text(result.code);
  return result;
}

}  // namespace

fs::path partial_path(const fs::path& path) {
  fs::path partial = path;
  partial += ".part";
  return partial;
}

void download(const std::string& address, const fs::path& path, const DownloadOptions& options) {
  Curl::get();  // fails before a file is created
  const fs::path partial = partial_path(path);
  const auto require = [&](bool ok) {
    const int code = errno;
    check(ok, "[download] cannot write {}: {}", partial.string(), std::generic_category().message(code));
  };
  Transfer transfer;
  transfer.options = &options;
  transfer.file = ::open(partial.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  require(transfer.file >= 0);
  struct stat facts {};
  require(::fstat(transfer.file, &facts) == 0);
  transfer.resumed_at = transfer.written = static_cast<std::uint64_t>(facts.st_size);

  const auto restart = [&] {
    require(::ftruncate(transfer.file, 0) == 0);
    transfer.resumed_at = transfer.written = 0;
  };
  if (transfer.resumed_at > options.max_bytes) restart();
  Result result = transfer_once(address, transfer);
  // The server does not support ranges, or the partial file is longer than the file.
  constexpr long range_not_satisfiable = 416;
  if (transfer.resumed_at > 0 &&
      (result.code == CURLE_RANGE_ERROR || result.status == range_not_satisfiable)) {
    restart();
    result = transfer_once(address, transfer);
  }
  errno = transfer.write_error;
  require(transfer.write_error == 0);
  if (transfer.too_long) restart();
  if (transfer.written == 0 && result.code != CURLE_OK) ::unlink(partial.c_str());  // nothing to resume
  check(!transfer.too_long, "[download] {}: the file is longer than {} bytes", address, options.max_bytes);
  check(result.code == CURLE_OK, "[download] {}: {}", address, result.text);
  require(::fsync(transfer.file) == 0);
  require(::rename(partial.c_str(), path.c_str()) == 0);
}

}  // namespace tandem
