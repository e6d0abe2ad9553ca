# Run by ctest with cmake -P after install_test.cmake: builds and runs one example against the moved prefix, in an empty
# folder of its own.
cmake_minimum_required(VERSION 3.22)
include(${CMAKE_CURRENT_LIST_DIR}/step.cmake)
set(work ${BUILD_DIR}/install-test/${EXAMPLE})
file(REMOVE_RECURSE ${work})
file(MAKE_DIRECTORY ${work}/run)

# Code built with a sanitizer must be linked with it.
if(SANITIZE)
  set(flags -DCMAKE_CXX_FLAGS=-fsanitize=${SANITIZE} -DCMAKE_C_FLAGS=-fsanitize=${SANITIZE})
endif()
if(CUDA)
  list(APPEND flags -DCMAKE_CUDA_COMPILER=${CUDA})
endif()
step(${CMAKE_COMMAND} -S ${EXAMPLES_DIR}/${EXAMPLE} -B ${work}/build -G ${GENERATOR} -DCMAKE_BUILD_TYPE=${CONFIG}
  -DCMAKE_CXX_COMPILER=${CXX} -DCMAKE_PREFIX_PATH=${BUILD_DIR}/install-test/moved ${flags})
step(${CMAKE_COMMAND} --build ${work}/build)
if(EXISTS ${EXAMPLES_DIR}/${EXAMPLE}/needs-model)
  step(${BUILD_DIR}/install-test/moved/bin/tandem train digits --limit 500 --epochs 1 --out ${work}/run/model)
  set(arguments model/best.safetensors)
endif()
if(NOT EXISTS ${EXAMPLES_DIR}/${EXAMPLE}/needs-data)  # a data set that a test may not download
  step(${CMAKE_COMMAND} -E chdir ${work}/run ${work}/build/${EXAMPLE} ${arguments})
  message("${output}")
endif()
file(REMOVE_RECURSE ${work})
