// Files of the source tree that the program carries with it; cmake/TandemEmbed.cmake writes the definitions.
#pragma once

#include <string_view>

namespace tandem {

extern const std::string_view embedded_plugin_header;  // tandem/plugin.h
extern const std::string_view embedded_plugin_host;    // tandem/study/plugin/plugin_host.py

// examples/plugins/kernels.*
extern const std::string_view embedded_example_cpp, embedded_example_cu, embedded_example_py;
extern const std::string_view embedded_example_augmentation,
    embedded_example_model;  // examples/plugins/own_*
// tandem/study/plugin/peers/*.py
extern const std::string_view embedded_peer_python, embedded_peer_numpy, embedded_peer_scipy,
    embedded_peer_numba, embedded_peer_numba_cuda, embedded_peer_opencv, embedded_peer_torch,
    embedded_peer_torch_cuda, embedded_peer_cupy;

}  // namespace tandem
