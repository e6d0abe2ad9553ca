# All dependencies of Tandem. Debian 12 and Ubuntu 24.04 provide them (scripts/install-dependencies).
if(TANDEM_PORTABLE)  # static libraries first
  set(CMAKE_FIND_LIBRARY_SUFFIXES .a .so)
  execute_process(COMMAND ${CMAKE_CXX_COMPILER} -print-file-name=libgomp.a OUTPUT_VARIABLE gomp
                  OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(IS_ABSOLUTE "${gomp}")
    set(OpenMP_gomp_LIBRARY ${gomp} CACHE FILEPATH "The OpenMP library")
  endif()
endif()
find_package(Threads REQUIRED)
find_package(OpenMP REQUIRED COMPONENTS CXX)
find_package(fmt REQUIRED)
set(tandem_fmt fmt::fmt)
if(TANDEM_PORTABLE)  # Debian and Ubuntu have no static libfmt: compile it from its headers
  add_library(tandem_fmt STATIC cmake/fmt.cpp)
  target_include_directories(tandem_fmt SYSTEM PUBLIC $<TARGET_PROPERTY:fmt::fmt,INTERFACE_INCLUDE_DIRECTORIES>)
  target_compile_definitions(tandem_fmt PUBLIC $<TARGET_PROPERTY:fmt::fmt,INTERFACE_COMPILE_DEFINITIONS>)
  set(tandem_fmt $<BUILD_INTERFACE:tandem_fmt> $<INSTALL_INTERFACE:fmt::fmt>)
endif()
find_package(nlohmann_json REQUIRED)
find_package(CLI11 REQUIRED)
find_package(JPEG REQUIRED)
find_package(PNG REQUIRED)
find_package(ZLIB REQUIRED)
# libcurl, cuBLAS and cuDNN are opened when they are first needed (core/shared_library.h): only their headers are used.
find_path(TANDEM_CURL_INCLUDE_DIR curl/curl.h REQUIRED)

set(tandem_private_dependencies OpenMP::OpenMP_CXX Threads::Threads nlohmann_json::nlohmann_json
    JPEG::JPEG PNG::PNG ZLIB::ZLIB ${CMAKE_DL_LIBS})

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

# Optional, and opened at run time: a build needs only their headers, and a program without the libraries says so
# when it meets such a file. -DTANDEM_TIFF_INCLUDE=OFF or -DTANDEM_HEIF_INCLUDE=OFF leaves one out.
find_path(TANDEM_TIFF_INCLUDE tiffio.h)
find_path(TANDEM_HEIF_INCLUDE libheif/heif.h)
if(TANDEM_TIFF_INCLUDE)
  # Version 4.5 brought error handlers and memory limits per file.
  file(STRINGS ${TANDEM_TIFF_INCLUDE}/tiffio.h tandem_tiff_per_file REGEX "TIFFOpenOptionsAlloc")
endif()
if(tandem_tiff_per_file)
  set_source_files_properties(tandem/image/format_tiff.cpp PROPERTIES
    COMPILE_DEFINITIONS TANDEM_HAS_TIFF=1 INCLUDE_DIRECTORIES ${TANDEM_TIFF_INCLUDE})
endif()
if(TANDEM_HEIF_INCLUDE)
  set_source_files_properties(tandem/image/format_heif.cpp PROPERTIES
    COMPILE_DEFINITIONS TANDEM_HAS_HEIF=1 INCLUDE_DIRECTORIES ${TANDEM_HEIF_INCLUDE})
endif()
list(APPEND tandem_private_dependencies ${CMAKE_DL_LIBS})

if(TANDEM_CUDA)
  find_package(CUDAToolkit REQUIRED)
  find_path(TANDEM_CUDNN_INCLUDE_DIR cudnn.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
  if(NOT TANDEM_CUDNN_INCLUDE_DIR)
    message(FATAL_ERROR "cuDNN 9's headers are missing: install them, or turn CUDA off with -DTANDEM_CUDA=OFF")
  endif()
  list(APPEND tandem_private_dependencies CUDA::cudart_static)
endif()
mark_as_advanced(TANDEM_CURL_INCLUDE_DIR TANDEM_CUDNN_INCLUDE_DIR)
add_library(tandem_headers INTERFACE)
target_include_directories(tandem_headers SYSTEM INTERFACE ${TANDEM_CURL_INCLUDE_DIR} ${TANDEM_CUDNN_INCLUDE_DIR})
list(APPEND tandem_private_dependencies $<BUILD_INTERFACE:tandem_headers>)
