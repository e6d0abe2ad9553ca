# Included by the build, it adds a target that runs at every build, and this file as a script: the script asks git for
# the commit, computes a hash of the public headers, and writes build_info.cpp and model_plugin.h only when one of them
# has changed.
if(CMAKE_SCRIPT_MODE_FILE)
  set(commit unknown)
  find_program(git git)
  if(git)
    # A copy of the sources inside another repository has no commit of its own.
    execute_process(COMMAND ${git} -C ${source_dir} rev-parse --show-toplevel
      OUTPUT_VARIABLE top OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    file(REAL_PATH "${source_dir}" here)
    if(top STREQUAL here)
      execute_process(COMMAND ${git} -C ${source_dir} describe --always --exclude=* --abbrev=10 --dirty=+changes
        OUTPUT_VARIABLE described OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
      if(described)
        set(commit ${described})
      endif()
    endif()
  endif()
  file(GLOB umbrella_headers ${source_dir}/tandem/*.h)
  set(hashes)
  foreach(umbrella IN LISTS umbrella_headers)
    file(STRINGS ${umbrella} listed REGEX "^#include \"tandem/[a-z0-9_/]+\\.h\"$")
    foreach(line IN LISTS listed)
      string(REGEX REPLACE "^#include \"(.*)\"$" "\\1" header ${line})
      file(SHA256 ${source_dir}/${header} hash)
      string(APPEND hashes "${header} ${hash} ")
    endforeach()
  endforeach()
  string(SHA256 headers "${hashes}")
  string(SUBSTRING ${headers} 0 16 headers)
  configure_file(${source_dir}/tandem/core/build_info.cpp.in ${output}/build_info.cpp @ONLY)
  configure_file(${source_dir}/tandem/model_plugin.h.in ${output}/include/tandem/model_plugin.h @ONLY)
else()
  set(build_info_source ${PROJECT_BINARY_DIR}/build_info.cpp)
  add_custom_target(tandem_build_info BYPRODUCTS ${build_info_source}
    COMMAND ${CMAKE_COMMAND} -Dsource_dir=${PROJECT_SOURCE_DIR} -Doutput=${PROJECT_BINARY_DIR}
            -Dversion=${PROJECT_VERSION} -Dhas_cuda=$<BOOL:${TANDEM_CUDA}> -P ${CMAKE_CURRENT_LIST_FILE}
    COMMENT "Asking git for the commit" VERBATIM)
  target_sources(tandem PRIVATE ${build_info_source})
  add_dependencies(tandem tandem_build_info)
endif()
