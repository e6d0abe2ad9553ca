# Build options, and the flags shared by all Tandem targets (target tandem_options).
if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Build type" FORCE)
endif()
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

option(TANDEM_TESTS "Build the tests" ${PROJECT_IS_TOP_LEVEL})
option(TANDEM_BENCH "Build the benchmarks" OFF)
option(TANDEM_WERROR "Treat warnings as errors, as ./run-tests does" OFF)
option(TANDEM_PORTABLE "Link into the program what not every Linux has, for a package" OFF)
set(TANDEM_SANITIZE "" CACHE STRING "Sanitizers, as in -fsanitize= (address,undefined or thread)")

# CUDA is used if nvcc is found; -DTANDEM_CUDA=ON|OFF overrides this.
include(CheckLanguage)
if(NOT DEFINED TANDEM_CUDA)
  find_program(TANDEM_NVCC nvcc HINTS ENV CUDACXX ENV CUDA_PATH PATHS /usr/local/cuda/bin PATH_SUFFIXES bin)
  if(TANDEM_NVCC AND NOT CMAKE_CUDA_COMPILER)
    set(CMAKE_CUDA_COMPILER ${TANDEM_NVCC})
  endif()
  check_language(CUDA)
  if(CMAKE_CUDA_COMPILER)
    set(TANDEM_CUDA ON)
  else()
    set(TANDEM_CUDA OFF)
  endif()
elseif(TANDEM_CUDA AND NOT CMAKE_CUDA_COMPILER)
  find_program(CMAKE_CUDA_COMPILER nvcc PATHS /usr/local/cuda/bin REQUIRED)
endif()
if(TANDEM_CUDA)
  # Machine code for Hopper (with its wgmma instructions), PTX that the driver compiles for any other GPU since Turing.
  set(TANDEM_CUDA_TARGETS "-gencode=arch=compute_90a,code=sm_90a;-gencode=arch=compute_75,code=compute_75"
      CACHE STRING "nvcc -gencode flags")
  set(CMAKE_CUDA_ARCHITECTURES OFF)
  enable_language(CUDA)
  if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)  # CMake before 3.26 does not know that nvcc supports C++20
    set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
    set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
  endif()
endif()

find_program(TANDEM_CCACHE ccache)
if(TANDEM_CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${TANDEM_CCACHE})
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${TANDEM_CCACHE})
endif()

if(TANDEM_WERROR)
  set(werror -Werror)
  set(cuda_werror -Werror=all-warnings)
endif()
add_library(tandem_options INTERFACE)
target_compile_options(tandem_options INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion
    -Wno-missing-field-initializers ${werror} -fno-math-errno>
  $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-psabi>
  $<$<COMPILE_LANGUAGE:CUDA>:${TANDEM_CUDA_TARGETS} --expt-relaxed-constexpr --extended-lambda
    -Xcompiler=-Wall,-Wextra ${cuda_werror}>)
# Flag parsing, reports and tests gain nothing from more optimization, and compile in half the time with less. (Measured:
# a command with five lines of its own takes 12.7 s with -O3, most of it the code of CLI11, and 6.8 s with -O1.)
set(tandem_light_optimization $<$<NOT:$<CONFIG:Debug>>:-O1>)

if(TANDEM_SANITIZE)
  target_compile_options(tandem_options INTERFACE
    -fsanitize=${TANDEM_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer -g)
  target_link_options(tandem_options INTERFACE -fsanitize=${TANDEM_SANITIZE})
endif()
