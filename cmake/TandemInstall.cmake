# cmake --install: the library, its headers, the program and a CMake package, so that another project can say
# find_package(tandem) and link tandem::tandem (examples/use-from-cmake does). The prefix can be moved.
include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/tandem)
install(TARGETS tandem EXPORT tandem-targets)
install(TARGETS tandem_app RUNTIME)
install(DIRECTORY tandem/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/tandem
  FILES_MATCHING PATTERN "*.h" PATTERN "*.cuh")
install(EXPORT tandem-targets NAMESPACE tandem:: DESTINATION ${package_dir})
configure_package_config_file(cmake/tandem-config.cmake.in ${CMAKE_CURRENT_BINARY_DIR}/tandem-config.cmake
  INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/tandem-config-version.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/tandem-config.cmake ${CMAKE_CURRENT_BINARY_DIR}/tandem-config-version.cmake
  cmake/TandemBlas.cmake cmake/TandemCudnn.cmake DESTINATION ${package_dir})

# Installs, moves the prefix, and builds and runs the example against it, with the compiler and flags of this build.
if(TANDEM_TESTS)
  add_test(NAME Install.ExampleBuildsAndRunsAgainstAMovedPrefix
    COMMAND ${CMAKE_COMMAND} -DBUILD_DIR=${CMAKE_CURRENT_BINARY_DIR}
      -DEXAMPLE_DIR=${CMAKE_CURRENT_SOURCE_DIR}/examples/use-from-cmake
      -DCONFIG=$<CONFIG> -DCXX=${CMAKE_CXX_COMPILER} -DSANITIZE=${TANDEM_SANITIZE}
      -DGENERATOR=${CMAKE_GENERATOR} -P ${CMAKE_CURRENT_SOURCE_DIR}/tests/install/install_test.cmake)
  set_tests_properties(Install.ExampleBuildsAndRunsAgainstAMovedPrefix PROPERTIES
    RESOURCE_LOCK install TIMEOUT 300)
endif()
