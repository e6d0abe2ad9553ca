# Run by ctest with cmake -P: install this build, move the prefix, use it from outside. Fails when a step fails,
# or when the package names a path of the machine that built it.
set(work ${BUILD_DIR}/install-test)
file(REMOVE_RECURSE ${work})
file(MAKE_DIRECTORY ${work})

function(step)
  execute_process(COMMAND ${ARGV} RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT status EQUAL 0)
    list(JOIN ARGV " " command)
    message(FATAL_ERROR "failed: ${command}\n${output}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

step(${CMAKE_COMMAND} --install ${BUILD_DIR} --config ${CONFIG} --prefix ${work}/first)
file(RENAME ${work}/first ${work}/moved)

file(GLOB_RECURSE package_files ${work}/moved/*.cmake)
foreach(package_file IN LISTS package_files)
  file(READ ${package_file} text)
  string(FIND "${text}" ${BUILD_DIR} build_path)
  if(NOT build_path EQUAL -1 OR text MATCHES "-Werror|[^\n]*/lib(openblas|jpeg|png|fmt|gomp)\\.[^\n]*")
    message(FATAL_ERROR "${package_file} carries what belongs to the builder: ${BUILD_DIR} or ${CMAKE_MATCH_0}")
  endif()
endforeach()

# Code built with a sanitizer must be linked with it.
if(SANITIZE)
  set(flags -DCMAKE_CXX_FLAGS=-fsanitize=${SANITIZE})
endif()
step(${CMAKE_COMMAND} -S ${EXAMPLE_DIR} -B ${work}/example -G ${GENERATOR} -DCMAKE_BUILD_TYPE=${CONFIG}
  -DCMAKE_CXX_COMPILER=${CXX} -DCMAKE_PREFIX_PATH=${work}/moved ${flags})
step(${CMAKE_COMMAND} --build ${work}/example)
step(${work}/example/use-tandem)
if(NOT output MATCHES "Tandem: \\[3, 2\\] on cpu: 1 4 2 5 3 6\nrefused: ")
  message(FATAL_ERROR "the example printed: ${output}")
endif()
step(${work}/moved/bin/tandem --help)
file(REMOVE_RECURSE ${work})
