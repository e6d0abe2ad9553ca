# Run by ctest with cmake -P: installs this build and moves the prefix. Fails when a step fails, when the package names
# a path of the machine that built it, or when an internal header is installed. Leaves ${BUILD_DIR}/install-test/moved
# for the examples (example_test.cmake).
cmake_minimum_required(VERSION 3.22)
include(${CMAKE_CURRENT_LIST_DIR}/step.cmake)
set(work ${BUILD_DIR}/install-test)
file(REMOVE_RECURSE ${work})
file(MAKE_DIRECTORY ${work})

step(${CMAKE_COMMAND} --install ${BUILD_DIR} --config ${CONFIG} --prefix ${work}/first)
file(RENAME ${work}/first ${work}/moved)

file(GLOB_RECURSE package_files ${work}/moved/*.cmake)
foreach(package_file IN LISTS package_files)
  file(READ ${package_file} text)
  string(FIND "${text}" ${BUILD_DIR} build_path)
  if(NOT build_path EQUAL -1 OR text MATCHES "-Werror|[^\n]*/lib(jpeg|png|fmt|gomp)\\.[^\n]*")
    message(FATAL_ERROR "${package_file} carries what belongs to the builder: ${BUILD_DIR} or ${CMAKE_MATCH_0}")
  endif()
endforeach()

file(GLOB_RECURSE headers RELATIVE ${work}/moved/include ${work}/moved/include/*)
foreach(header IN LISTS headers)
  if(header MATCHES "_kernel\\.h$|\\.cuh$|layout\\.h$|driver\\.h$")
    message(FATAL_ERROR "an internal header is installed: ${header}")
  endif()
endforeach()
if(NOT "tandem/tandem.h" IN_LIST headers)
  message(FATAL_ERROR "tandem/tandem.h is not installed")
endif()
step(${work}/moved/bin/tandem --help)

# The weights are found relative to the program: a damaged file there is the one that is read.
if(NOT EXISTS ${work}/moved/share/tandem/weights/README.md)
  message(FATAL_ERROR "share/tandem/weights is not installed")
endif()
set(damaged ${work}/damaged/share/tandem/weights/resnet18-scenes.safetensors)
file(MAKE_DIRECTORY ${work}/damaged/bin)
file(CREATE_LINK ${work}/moved/bin/tandem ${work}/damaged/bin/tandem COPY_ON_ERROR)
file(WRITE ${damaged} "no weights")
execute_process(COMMAND ${CMAKE_COMMAND} -E env --unset=TANDEM_WEIGHTS ${work}/damaged/bin/tandem probe scenes digits
  RESULT_VARIABLE status ERROR_VARIABLE errors OUTPUT_QUIET)
string(FIND "${errors}" ${damaged} at)
if(status EQUAL 0 OR at EQUAL -1)
  message(FATAL_ERROR "expected an error about ${damaged}, got status ${status}: ${errors}")
endif()

# The MPI plugin can be built from what is installed, with any MPI.
find_program(mpicc mpicc)
if(mpicc)
  step(${mpicc} -shared -fPIC -O2 -o ${work}/libtandem_mpi.so ${work}/moved/share/tandem/mpi/mpi_transport.c)
endif()
