# Run by ctest with cmake -P after install_test.cmake: compiles, links and runs a program with the flags of the installed
# pkg-config file.
cmake_minimum_required(VERSION 3.22)
include(${CMAKE_CURRENT_LIST_DIR}/step.cmake)
set(work ${BUILD_DIR}/install-test/pkg-config)
file(REMOVE_RECURSE ${work})
file(WRITE ${work}/main.cpp "
#include <fmt/core.h>
#include <tandem/device.h>
int main() { fmt::print(\"{}\\n\", tandem::default_device().to_string()); }
")
set(ENV{PKG_CONFIG_PATH} ${BUILD_DIR}/install-test/moved/${LIBDIR}/pkgconfig)
step(${PKG_CONFIG} --cflags --libs tandem)
separate_arguments(flags UNIX_COMMAND "${output}")
step(${CXX} -std=c++20 ${work}/main.cpp -o ${work}/main ${flags})
step(${work}/main)
if(NOT output MATCHES "^(cpu|cuda:0)\n$")
  message(FATAL_ERROR "expected a device, got ${output}")
endif()
file(REMOVE_RECURSE ${work})
