# Files that the program carries with it, as constants: embed(NAME FILE) defines tandem::embedded_NAME with the text of
# FILE. It is written at configure time and again whenever a file changes.
set(embedded_source ${PROJECT_BINARY_DIR}/embedded.cpp)
set(embedded_text "// Written by cmake/TandemEmbed.cmake.\n#include <string_view>\n\nnamespace tandem {\n\n")
set(embedded_delimiter EMBEDDED)

function(embed name file)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${file})
  file(READ ${PROJECT_SOURCE_DIR}/${file} content)
  string(APPEND embedded_text "extern const std::string_view embedded_${name};\n"
                              "const std::string_view embedded_${name} = "
                              "R\"${embedded_delimiter}(${content})${embedded_delimiter}\";\n\n")
  set(embedded_text "${embedded_text}" PARENT_SCOPE)
endfunction()

embed(plugin_header tandem/plugin.h)
embed(plugin_host tandem/study/plugin/plugin_host.py)
embed(example_cpp examples/plugins/kernels.cpp)
embed(example_cu examples/plugins/kernels.cu)
embed(example_py examples/plugins/kernels.py)
embed(example_augmentation examples/plugins/own_augmentation/vignette.c)
embed(example_model examples/plugins/own_model/residual.cpp)
foreach(peer python numpy scipy numba numba_cuda opencv torch torch_cuda cupy)
  embed(peer_${peer} tandem/study/plugin/peers/peer_${peer}.py)
endforeach()
embed(queue_driver_c tandem/study/grade/drivers/queue_driver.c)
embed(queue_driver_py tandem/study/grade/drivers/queue_driver.py)
foreach(profile perceptron-and-kernels augmentation-and-correlation)
  string(REPLACE - _ constant profile_${profile})
  embed(${constant} tandem/study/grade/profiles/${profile}.toml)
endforeach()
embed(serve_page tandem/serve/page.html)
embed(openapi tandem/serve/openapi.json)
embed(watch_page tandem/serve/watch.html)

string(APPEND embedded_text "}  // namespace tandem\n")
file(WRITE ${embedded_source}.new "${embedded_text}")
file(COPY_FILE ${embedded_source}.new ${embedded_source} ONLY_IF_DIFFERENT)
target_sources(tandem PRIVATE ${embedded_source})
