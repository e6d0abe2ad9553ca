#include "tandem/study/plugin/peers.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "tandem/core/check.h"
#include "tandem/core/write_file.h"
#include "tandem/files/scratch_folder.h"
#include "tandem/process/run_program.h"
#include "tandem/study/plugin/embedded.h"
#include "tandem/study/plugin/python.h"

namespace tandem {
namespace {

struct Peer {
  std::string_view name;     // on the command line
  std::string_view version;  // in tables
  std::string_view package;  // that it imports
  bool is_cuda;
  const std::string_view& text;
};

const Peer peers[] = {{"python", "Python", "sys", false, embedded_peer_python},
                      {"numpy", "NumPy", "numpy", false, embedded_peer_numpy},
                      {"scipy", "SciPy", "scipy", false, embedded_peer_scipy},
                      {"numba", "Numba", "numba", false, embedded_peer_numba},
                      {"numba", "Numba CUDA", "numba", true, embedded_peer_numba_cuda},
                      {"opencv", "OpenCV", "cv2", false, embedded_peer_opencv},
                      {"torch", "PyTorch", "torch", false, embedded_peer_torch},
                      {"torch", "PyTorch CUDA", "torch", true, embedded_peer_torch_cuda},
                      {"cupy", "CuPy", "cupy", true, embedded_peer_cupy}};

// Whether the package is there; asked once.
bool is_installed(const Peer& peer) {
  static std::map<std::string_view, bool> known;
  const auto [found, is_new] = known.try_emplace(peer.package, false);
  if (is_new)
    found->second = run_program({python_host_command().front(), "-c", "import " + std::string(peer.package)},
                                {.folder = {}, .timeout_s = 120})
                        .empty();
  return found->second;
}

bool is_named(const std::vector<std::string>& names, const Peer& peer) {
  return std::ranges::find(names, peer.name) != names.end();
}

// The file of a peer, in a folder that exists as long as the process.
std::filesystem::path file_of(const Peer& peer) {
  static const ScratchFolder folder;
  std::filesystem::path path =
      folder.path() / fmt::format("peer_{}{}.py", peer.name, peer.is_cuda ? "_cuda" : "");
  if (!std::filesystem::exists(path)) write_file("plugin", path, peer.text);
  return path;
}

// The first line of the module: """NumPy: np.maximum, …"""
std::string summary_of(const Peer& peer) {
  const std::string_view line = peer.text.substr(3, peer.text.find_first_of("\n\"", 3) - 3);
  return std::string(line.substr(line.find(": ") + 2));
}

}  // namespace

std::vector<std::string> known_peers() {
  std::vector<std::string> names;
  for (const Peer& peer : peers)
    if (names.empty() || names.back() != peer.name) names.emplace_back(peer.name);
  return names;
}

std::vector<PluginVersion> installed_peers(const std::vector<std::string>& names) {
  std::vector<PluginVersion> versions;
  for (const Peer& peer : peers) {
    if (!is_named(names, peer) || (peer.is_cuda && cuda_device_count() == 0) || !is_installed(peer)) continue;
    PluginVersion version{.device = peer.is_cuda ? Device{Backend::cuda, 0} : cpu_device, .is_peer = true};
    version.file = {.name = std::string(peer.version), .is_python = true};
    version.file.source = version.file.library = file_of(peer);
    versions.push_back(std::move(version));
  }
  return versions;
}

std::vector<std::string> missing_peers(const std::vector<std::string>& names) {
  std::vector<std::string> missing;
  for (const Peer& peer : peers)
    if (is_named(names, peer) && !is_installed(peer) && (missing.empty() || missing.back() != peer.name))
      missing.emplace_back(peer.name);
  return missing;
}

std::vector<Fact> peer_legend(const std::vector<std::string>& names) {
  std::vector<Fact> legend;
  for (const Peer& peer : peers)
    if (is_named(names, peer) && (!peer.is_cuda || cuda_device_count() > 0) && is_installed(peer))
      legend.push_back({std::string(peer.version), summary_of(peer)});
  return legend;
}

}  // namespace tandem
