# cmake --install: the library, its public headers, the program and a CMake package, so that another project can use
# find_package(tandem) and link tandem::tandem (see examples/). The prefix is relocatable.
include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/tandem)
install(TARGETS tandem EXPORT tandem-targets)
install(TARGETS tandem_app RUNTIME COMPONENT program)
# Public are the umbrella headers (tandem/nn.h, …) and what they list; tests/architecture checks that these include
# nothing else.
file(GLOB umbrella_headers CONFIGURE_DEPENDS RELATIVE ${CMAKE_CURRENT_SOURCE_DIR} tandem/*.h)
set(public_headers ${umbrella_headers})
foreach(umbrella IN LISTS umbrella_headers)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${umbrella})
  file(STRINGS ${umbrella} listed REGEX "^#include \"tandem/[a-z0-9_/]+\\.h\"$")
  foreach(line IN LISTS listed)
    string(REGEX REPLACE "^#include \"(.*)\"$" "\\1" header ${line})
    list(APPEND public_headers ${header})
  endforeach()
endforeach()
list(REMOVE_DUPLICATES public_headers)
foreach(header IN LISTS public_headers)
  get_filename_component(folder ${header} DIRECTORY)
  install(FILES ${header} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/${folder})
endforeach()

install(DIRECTORY weights/ DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/tandem/weights COMPONENT program)
install(FILES ${PROJECT_BINARY_DIR}/include/tandem/model_plugin.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/tandem)

install(EXPORT tandem-targets NAMESPACE tandem:: DESTINATION ${package_dir})
configure_package_config_file(cmake/tandem-config.cmake.in ${CMAKE_CURRENT_BINARY_DIR}/tandem-config.cmake
  INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/tandem-config-version.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/tandem-config.cmake ${CMAKE_CURRENT_BINARY_DIR}/tandem-config-version.cmake
  DESTINATION ${package_dir})

# The library is static: whoever links it links what it uses.
set(pc_requires fmt libjpeg libpng zlib)
if(TANDEM_WEBP_LIBRARY)
  list(APPEND pc_requires libwebp)
endif()
list(JOIN pc_requires ", " pc_requires)
set(pc_libs "-fopenmp -ldl")
set(pc_cuda 0)
if(TANDEM_CUDA)
  set(pc_cuda 1)
  set(pc_libs "${pc_libs} -L/usr/local/cuda/lib64 -lcudart_static -lpthread -lrt")
endif()
file(RELATIVE_PATH prefix_from_pc /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
string(REGEX REPLACE "/$" "" prefix_from_pc ${prefix_from_pc})
configure_file(cmake/tandem.pc.in ${CMAKE_CURRENT_BINARY_DIR}/tandem.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/tandem.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

# Man page and completions, made by the program from its own flags.
if(EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/apps/tandem/generate.cpp AND NOT CMAKE_CROSSCOMPILING)
  set(generated_files)
  foreach(row "man;tandem.1;man/man1" "bash;tandem;bash-completion/completions" "zsh;_tandem;zsh/vendor-completions"
          "fish;tandem.fish;fish/vendor_completions.d")
    list(GET row 0 what)
    list(GET row 1 name)
    list(GET row 2 folder)
    set(generated_file ${CMAKE_CURRENT_BINARY_DIR}/generated/${what}/${name})
    file(MAKE_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/generated/${what})
    add_custom_command(OUTPUT ${generated_file} COMMAND tandem_app generate ${what} > ${generated_file}
                       DEPENDS tandem_app VERBATIM)
    list(APPEND generated_files ${generated_file})
    install(FILES ${generated_file} DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/${folder} COMPONENT program)
  endforeach()
  add_custom_target(tandem_generated ALL DEPENDS ${generated_files})
endif()

# The reference documentation of the public headers; a warning is an error.
find_program(TANDEM_DOXYGEN doxygen)
if(TANDEM_DOXYGEN)
  set(doxygen_inputs)
  foreach(header IN LISTS public_headers)
    string(APPEND doxygen_inputs " \"${CMAKE_CURRENT_SOURCE_DIR}/${header}\"")
  endforeach()
  configure_file(docs/Doxyfile.in ${CMAKE_CURRENT_BINARY_DIR}/Doxyfile @ONLY)
  add_custom_target(docs COMMAND ${TANDEM_DOXYGEN} ${CMAKE_CURRENT_BINARY_DIR}/Doxyfile
    WORKING_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR} COMMENT "Reference documentation in ${CMAKE_CURRENT_BINARY_DIR}/reference"
    VERBATIM)
endif()

# Installs to a prefix and moves it; then each example is built and run against it, as a project of its own, with the
# compiler and flags of this build.
if(TANDEM_TESTS)
  set(install_test ${CMAKE_COMMAND} -DBUILD_DIR=${CMAKE_CURRENT_BINARY_DIR} -DCONFIG=$<CONFIG>
    -DCXX=${CMAKE_CXX_COMPILER} -DCUDA=${CMAKE_CUDA_COMPILER} -DSANITIZE=${TANDEM_SANITIZE} -DGENERATOR=${CMAKE_GENERATOR})
  add_test(NAME Install.Prefix_IsRelocatable
    COMMAND ${install_test} -P ${CMAKE_CURRENT_SOURCE_DIR}/tests/install/install_test.cmake)
  set_tests_properties(Install.Prefix_IsRelocatable PROPERTIES FIXTURES_SETUP installed_prefix TIMEOUT 120)
  find_program(TANDEM_PKG_CONFIG pkg-config)
  if(TANDEM_PKG_CONFIG AND NOT TANDEM_SANITIZE)
    add_test(NAME Install.PkgConfig_Links
      COMMAND ${install_test} -DPKG_CONFIG=${TANDEM_PKG_CONFIG} -DLIBDIR=${CMAKE_INSTALL_LIBDIR}
        -P ${CMAKE_CURRENT_SOURCE_DIR}/tests/install/pkg_config_test.cmake)
    set_tests_properties(Install.PkgConfig_Links PROPERTIES FIXTURES_REQUIRED installed_prefix TIMEOUT 120)
  endif()
  add_test(NAME Release.Versions_Agree
    COMMAND ${CMAKE_COMMAND} -DVERSION=${PROJECT_VERSION} -DSOURCE_DIR=${CMAKE_CURRENT_SOURCE_DIR}
      -P ${CMAKE_CURRENT_SOURCE_DIR}/tests/install/versions_test.cmake)
  add_test(NAME Release.Weights_AgreeWithTheirReadme
    COMMAND ${CMAKE_COMMAND} -DSOURCE_DIR=${CMAKE_CURRENT_SOURCE_DIR}
      -P ${CMAKE_CURRENT_SOURCE_DIR}/tests/install/weights_test.cmake)
  file(GLOB examples CONFIGURE_DEPENDS RELATIVE ${CMAKE_CURRENT_SOURCE_DIR}/examples examples/*/CMakeLists.txt)
  foreach(example IN LISTS examples)
    get_filename_component(example ${example} DIRECTORY)
    add_test(NAME Examples.${example}
      COMMAND ${install_test} -DEXAMPLE=${example} -DEXAMPLES_DIR=${CMAKE_CURRENT_SOURCE_DIR}/examples
        -P ${CMAKE_CURRENT_SOURCE_DIR}/tests/install/example_test.cmake)
    set_tests_properties(Examples.${example} PROPERTIES FIXTURES_REQUIRED installed_prefix TIMEOUT 300 COST 500)
  endforeach()
endif()
