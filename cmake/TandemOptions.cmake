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
option(TANDEM_PRECOMPILED_HEADERS "Compile the headers that most files use once per target" ON)
option(TANDEM_FUZZ_COVERAGE "Build the fuzz targets to replay inputs, as scripts/fuzz --coverage does" OFF)
set(TANDEM_SANITIZE "" CACHE STRING "Sanitizers, as in -fsanitize= (address,undefined or thread)")

# CUDA is used if nvcc is found; -DTANDEM_CUDA=ON|OFF overrides this. With -DTANDEM_CUDA=native only the kernels for the
# GPUs of this machine are built, and none if it has none.
find_program(TANDEM_NVCC nvcc HINTS ENV CUDACXX ENV CUDA_PATH PATHS /usr/local/cuda/bin PATH_SUFFIXES bin)
if(TANDEM_CUDA STREQUAL native)
  execute_process(COMMAND nvidia-smi --query-gpu=compute_cap --format=csv,noheader
                  OUTPUT_VARIABLE capabilities OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE no_gpu)
  string(REGEX MATCHALL "[0-9]+[.][0-9]+" capabilities "${capabilities}")
  list(REMOVE_DUPLICATES capabilities)
  if(no_gpu OR NOT capabilities OR NOT TANDEM_NVCC)
    set(TANDEM_CUDA OFF)
  else()
    set(TANDEM_CUDA ON)
    list(TRANSFORM capabilities REPLACE "[.]" "")
    list(TRANSFORM capabilities REPLACE "^90$" "90a")  # with its wgmma instructions
    list(TRANSFORM capabilities REPLACE ".+" "-gencode=arch=compute_\\0,code=sm_\\0" OUTPUT_VARIABLE TANDEM_CUDA_TARGETS)
  endif()
endif()
if(TANDEM_NVCC AND NOT CMAKE_CUDA_COMPILER AND (TANDEM_CUDA OR NOT DEFINED TANDEM_CUDA))
  set(CMAKE_CUDA_COMPILER ${TANDEM_NVCC})
endif()
include(CheckLanguage)
if(NOT DEFINED TANDEM_CUDA)
  check_language(CUDA)
  if(CMAKE_CUDA_COMPILER)
    set(TANDEM_CUDA ON)
  else()
    set(TANDEM_CUDA OFF)
  endif()
elseif(TANDEM_CUDA AND NOT CMAKE_CUDA_COMPILER)
  message(FATAL_ERROR "nvcc is missing: install CUDA, or turn it off with -DTANDEM_CUDA=OFF")
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

# Paths of the sources are relative for ccache, so that a clone in another folder finds what this one has compiled. The
# sloppiness is for precompiled headers, which CMake writes just before they are compiled. ccache takes nvcc's -gencode
# for a debug flag, with which the folder would count.
find_program(TANDEM_CCACHE ccache)
if(TANDEM_CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${CMAKE_CURRENT_SOURCE_DIR}
      CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_ctime,include_file_mtime ${TANDEM_CCACHE})
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${CMAKE_CURRENT_SOURCE_DIR} CCACHE_NOHASHDIR=1
      ${TANDEM_CCACHE})
endif()

# precompile(TARGET HEADERS…): compiles headers that most files of the target use once; precompile(TARGET REUSE_FROM
# OTHER) takes those of another target with the same flags. The preset debug does without, so that a file that forgets
# an #include is found.
function(precompile target)
  if(TANDEM_PRECOMPILED_HEADERS)
    if(ARGV1 STREQUAL REUSE_FROM)
      target_precompile_headers(${target} ${ARGN})
    else()
      list(TRANSFORM ARGN REPLACE ".+" "$<$<COMPILE_LANGUAGE:CXX>:<\\0$<ANGLE-R>>")
      target_precompile_headers(${target} PRIVATE ${ARGN})
    endif()
    # The first flag is for ccache. GCC 12 warns wrongly about its own std::string, which it hides unless the header is
    # precompiled.
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-fpch-preprocess>
      $<$<AND:$<COMPILE_LANG_AND_ID:CXX,GNU>,$<VERSION_LESS:$<CXX_COMPILER_VERSION>,13>>:-Wno-array-bounds -Wno-restrict
        -Wno-stringop-overflow>)
  endif()
endfunction()
set(tandem_common_headers algorithm array cmath cstddef cstdint cstring filesystem functional limits map memory optional
    span string string_view utility vector fmt/format.h fmt/ranges.h)

# Names of folders of this machine are in no package: it has the same bytes wherever it was built.
set(tandem_source_folder ${CMAKE_CURRENT_SOURCE_DIR})
set(tandem_build_folder ${CMAKE_CURRENT_BINARY_DIR})
if(TANDEM_PORTABLE)
  set(prefix_map -ffile-prefix-map=${CMAKE_CURRENT_SOURCE_DIR}=.)
  add_compile_options($<$<COMPILE_LANGUAGE:C,CXX>:${prefix_map}> $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=${prefix_map}>)
  set(tandem_source_folder /nonexistent)
  set(tandem_build_folder /nonexistent)
endif()

if(TANDEM_WERROR)
  set(werror -Werror)
  set(cuda_werror -Werror=all-warnings)
endif()
add_library(tandem_options INTERFACE)
target_compile_options(tandem_options INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion
    -Wno-missing-field-initializers ${werror} -fno-math-errno>
  $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-psabi --param=ggc-min-heapsize=524288>
  $<$<COMPILE_LANGUAGE:CUDA>:${TANDEM_CUDA_TARGETS} --expt-relaxed-constexpr --extended-lambda
    -Xcompiler=-Wall,-Wextra ${cuda_werror}>)
# Flag parsing, reports and tests gain nothing from more optimization, and compile in half the time with less. (Measured:
# a command with five lines of its own takes 12.7 s with -O3, most of it the code of CLI11, and 6.8 s with -O1.)
set(tandem_light_optimization $<$<NOT:$<CONFIG:Debug>>:-O1>)

if(TANDEM_SANITIZE)
  # -O1 -g1 compiles in about 60 % of the time of -O2 -g.
  target_compile_options(tandem_options INTERFACE
    -fsanitize=${TANDEM_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer -O1 -g1)
  target_link_options(tandem_options INTERFACE -fsanitize=${TANDEM_SANITIZE})
  if(TANDEM_SANITIZE MATCHES address AND CMAKE_CXX_COMPILER_ID MATCHES Clang)  # GCC defines it
    target_compile_definitions(tandem_options INTERFACE __SANITIZE_ADDRESS__=1)
  endif()
endif()
