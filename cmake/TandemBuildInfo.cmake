# Included by the build, it adds a target that runs at every build, and this file as a script: the script asks git for
# the commit and writes build_info.cpp only when that has changed.
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
  configure_file(${source_dir}/tandem/core/build_info.cpp.in ${output} @ONLY)
else()
  set(build_info_source ${PROJECT_BINARY_DIR}/build_info.cpp)
  add_custom_target(tandem_build_info BYPRODUCTS ${build_info_source}
    COMMAND ${CMAKE_COMMAND} -Dsource_dir=${PROJECT_SOURCE_DIR} -Doutput=${build_info_source}
            -Dversion=${PROJECT_VERSION} -P ${CMAKE_CURRENT_LIST_FILE}
    COMMENT "Asking git for the commit" VERBATIM)
  target_sources(tandem PRIVATE ${build_info_source})
  add_dependencies(tandem tandem_build_info)
endif()
