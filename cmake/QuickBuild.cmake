# A build spends its time on what sources have in common: headers, and the templates that each of them makes anew. So the headers of
# the standard library, of Boost and of the tests' framework are parsed once, and the sources of a target are compiled some at a time,
# as if they were one. What is compiled by other flags (plugins, the client) cannot share those headers. No source may count on what another one
# includes: a build with -DSLUICE_QUICK_BUILD=OFF shows what it forgot, and so does clang-tidy, which looks at each by itself.
option(SLUICE_QUICK_BUILD "Compile common headers once, and several sources at a time" ON)
set(sources_at_a_time 8)

set(sluice_std_headers
  <algorithm> <array> <atomic> <charconv> <chrono> <condition_variable> <cstdint> <cstring> <deque> <functional> <map>
  <memory> <mutex> <optional> <random> <set> <span> <stop_token> <string> <string_view> <system_error> <thread> <unordered_map> <utility>
  <variant> <vector> <boost/core/noncopyable.hpp> <boost/system/result.hpp>)

# For tests, what none of them computes in for long is compiled without the optimiser, in half the time: most of the tests themselves, and
# of the host its commands, its files, and what holds it together. Not beside sanitizers: their stack frames are too large then for
# what nests deeply.
if(NOT SLUICE_SANITIZE)
  set(sluice_unoptimised $<$<CONFIG:Debug>:-O0>)
endif()

# sluice_compile_together(SET TYPES OPTIMISED FOLDER...): the targets of these types below the folders are compiled some sources at a
# time, and share the set's headers and the options that it was compiled with. OPTIMISED: those that say so of themselves (TRUE), or all
# others.
function(sluice_compile_together set types optimised)
  get_target_property(options ${set} COMPILE_OPTIONS)
  if(NOT options)
    set(options)
  endif()
  foreach(folder ${ARGN})
    get_property(folders DIRECTORY ${folder} PROPERTY SUBDIRECTORIES)
    sluice_compile_together(${set} "${types}" ${optimised} ${folders})
    get_property(targets DIRECTORY ${folder} PROPERTY BUILDSYSTEM_TARGETS)
    foreach(target ${targets})
      get_target_property(type ${target} TYPE)
      get_target_property(libraries ${target} LINK_LIBRARIES)
      get_target_property(visibility ${target} CXX_VISIBILITY_PRESET)
      get_target_property(own ${target} SLUICE_OPTIMISED)
      if(NOT own)
        set(own FALSE)
      endif()
      if(type IN_LIST types AND "sluice::build_options" IN_LIST libraries AND own STREQUAL optimised)
        if(NOT visibility)
          target_compile_options(${target} PRIVATE ${options})
          target_precompile_headers(${target} REUSE_FROM ${set})
        endif()
        set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${sources_at_a_time})
      endif()
    endforeach()
  endforeach()
endfunction()

if(SLUICE_QUICK_BUILD)
  set(nothing ${PROJECT_SOURCE_DIR}/cmake/precompiled.cpp)
  add_library(sluice_std STATIC EXCLUDE_FROM_ALL ${nothing})
  add_library(sluice_std_unoptimised STATIC EXCLUDE_FROM_ALL ${nothing})
  target_compile_options(sluice_std_unoptimised PRIVATE ${sluice_unoptimised})
  foreach(set sluice_std sluice_std_unoptimised)
    target_link_libraries(${set} PRIVATE sluice::build_options)
    target_precompile_headers(${set} PRIVATE ${sluice_std_headers})
  endforeach()
  foreach(folder base dynamo host/cost host/isolation host/plugin host/queue host/stores host/work)
    sluice_compile_together(sluice_std STATIC_LIBRARY FALSE ${PROJECT_SOURCE_DIR}/${folder})
  endforeach()
  foreach(folder config host/cli host/fleet host/observe host/operate host/runtime host/validate)
    sluice_compile_together(sluice_std_unoptimised STATIC_LIBRARY FALSE ${PROJECT_SOURCE_DIR}/${folder})
  endforeach()
  foreach(folder client plugins)
    sluice_compile_together(sluice_std "OBJECT_LIBRARY;STATIC_LIBRARY;MODULE_LIBRARY" FALSE ${PROJECT_SOURCE_DIR}/${folder})
  endforeach()
  if(SLUICE_TESTS)
    set(tests ${PROJECT_SOURCE_DIR}/tests)
    add_library(sluice_test_parts STATIC EXCLUDE_FROM_ALL ${nothing})
    add_executable(sluice_optimised_tests EXCLUDE_FROM_ALL ${nothing})
    add_executable(sluice_tests EXCLUDE_FROM_ALL ${nothing})
    foreach(set sluice_test_parts sluice_tests)
      target_compile_options(${set} PRIVATE ${sluice_unoptimised})
    endforeach()
    foreach(set sluice_test_parts sluice_optimised_tests sluice_tests)
      target_link_libraries(${set} PRIVATE sluice::build_options GTest::gmock GTest::gtest_main)
      target_precompile_headers(${set} PRIVATE ${sluice_std_headers} <gmock/gmock.h> <gtest/gtest.h>)
    endforeach()
    sluice_compile_together(sluice_std STATIC_LIBRARY TRUE ${tests})
    sluice_compile_together(sluice_test_parts "STATIC_LIBRARY;OBJECT_LIBRARY" FALSE ${tests})
    sluice_compile_together(sluice_optimised_tests EXECUTABLE TRUE ${tests})
    sluice_compile_together(sluice_tests EXECUTABLE FALSE ${tests})
    # Beside the tests they only have to build; those that measure are built without tests.
    if(SLUICE_BENCH)
      sluice_compile_together(sluice_tests EXECUTABLE FALSE ${PROJECT_SOURCE_DIR}/bench)
    endif()
  endif()
endif()
