# The parsers alone, as a library for most of the fuzz targets: it is a fifth of the whole. In the
# scope of the sources' properties.
file(GLOB parser_sources CONFIGURE_DEPENDS tandem/core/*.cpp tandem/device/*.cpp tandem/files/*.cpp tandem/files/onnx/*.cpp
     tandem/image/*.cpp tandem/tensor/*.cpp tandem/text/*.cpp)
list(FILTER parser_sources EXCLUDE REGEX "_cuda\\.cpp$|/image/resize|/(download|fetch|fetch_source|folder_lock|followed_file|shipped_weights|cache)\\.cpp$")
foreach(name report/axis report/csv report/html report/page report/plot report/plot_bars report/plot_lines report/study_ratios
        report/study_rows serve/http_message serve/http_parser serve/listen_socket serve/request_images train/run_status
        train/stop_time)
  list(APPEND parser_sources ${CMAKE_CURRENT_SOURCE_DIR}/tandem/${name}.cpp)
endforeach()
add_library(tandem_parsers STATIC ${parser_sources})
target_include_directories(tandem_parsers PUBLIC ${CMAKE_CURRENT_SOURCE_DIR})
target_compile_features(tandem_parsers PUBLIC cxx_std_20)
target_compile_definitions(tandem_parsers PUBLIC TANDEM_HAS_CUDA=0 PRIVATE TANDEM_VERSION="${PROJECT_VERSION}")
target_link_libraries(tandem_parsers PUBLIC ${tandem_fmt} PRIVATE tandem_options ${tandem_private_dependencies})
