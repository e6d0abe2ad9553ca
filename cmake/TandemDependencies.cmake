# All dependencies of Tandem. Debian 12 and Ubuntu 24.04 provide them (scripts/install-dependencies).
find_package(Threads REQUIRED)
find_package(OpenMP REQUIRED COMPONENTS CXX)
find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(CLI11 REQUIRED)
find_package(JPEG REQUIRED)
find_package(PNG REQUIRED)
find_package(ZLIB REQUIRED)
find_package(CURL REQUIRED)

include(TandemBlas)
if(NOT TARGET tandem::blas)
  message(FATAL_ERROR "OpenBLAS is missing: run scripts/install-dependencies")
endif()

set(tandem_private_dependencies tandem::blas OpenMP::OpenMP_CXX Threads::Threads nlohmann_json::nlohmann_json
    JPEG::JPEG PNG::PNG ZLIB::ZLIB CURL::libcurl)

# Optional: without it, a WebP file gives an error that says what is missing.
find_path(TANDEM_WEBP_INCLUDE webp/decode.h)
find_library(TANDEM_WEBP_LIBRARY webp)
if(TANDEM_WEBP_INCLUDE AND TANDEM_WEBP_LIBRARY)
  add_library(tandem_webp INTERFACE IMPORTED)
  target_include_directories(tandem_webp INTERFACE ${TANDEM_WEBP_INCLUDE})
  target_compile_definitions(tandem_webp INTERFACE TANDEM_HAS_WEBP=1)
  target_link_libraries(tandem_webp INTERFACE ${TANDEM_WEBP_LIBRARY})
  list(APPEND tandem_private_dependencies $<BUILD_INTERFACE:tandem_webp> $<INSTALL_INTERFACE:webp>)
endif()

if(TANDEM_CUDA)
  find_package(CUDAToolkit REQUIRED)
  include(TandemCudnn)
  if(NOT TARGET tandem::cudnn)
    message(FATAL_ERROR "cuDNN 9 is missing: install it, or turn CUDA off with -DTANDEM_CUDA=OFF")
  endif()
  list(APPEND tandem_private_dependencies CUDA::cudart_static CUDA::cublas CUDA::cublasLt tandem::cudnn)
endif()
