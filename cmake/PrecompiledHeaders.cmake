# The headers of the standard library and of the test framework are parsed once, not in each source, where they took half of the time
# of a build: one set for the product's libraries, one for the tests' programs. What is compiled by other flags (plugins, the client)
# parses them itself. No source may count on what stands here: a build with -DSLUICE_PRECOMPILED=OFF shows what it forgot.
option(SLUICE_PRECOMPILED "Parse the headers of the standard library once" ON)

set(sluice_std_headers
  <algorithm> <array> <atomic> <charconv> <chrono> <condition_variable> <cstdint> <cstring> <deque> <functional> <map>
  <memory> <mutex> <optional> <set> <span> <stop_token> <string> <string_view> <system_error> <thread> <unordered_map> <utility>
  <variant> <vector>)

# What only tests are made of compiles two to three times as fast without the optimiser; what they test is optimised as ever.
set(sluice_test_options $<$<CONFIG:Debug>:-O0>)

# sluice_precompile(SET FOLDER TYPE [OPTION...]): the targets of this type below the folder share the set's headers, and the options
# that it was compiled with.
function(sluice_precompile set folder type)
  get_property(folders DIRECTORY ${folder} PROPERTY SUBDIRECTORIES)
  foreach(below ${folders})
    sluice_precompile(${set} ${below} ${type} ${ARGN})
  endforeach()
  get_property(targets DIRECTORY ${folder} PROPERTY BUILDSYSTEM_TARGETS)
  foreach(target ${targets})
    get_target_property(own_type ${target} TYPE)
    get_target_property(libraries ${target} LINK_LIBRARIES)
    get_target_property(visibility ${target} CXX_VISIBILITY_PRESET)
    get_target_property(optimised ${target} SLUICE_OPTIMISED)
    if(own_type STREQUAL ${type} AND "sluice::build_options" IN_LIST libraries AND NOT visibility AND NOT optimised)
      target_compile_options(${target} PRIVATE ${ARGN})
      target_precompile_headers(${target} REUSE_FROM ${set})
    endif()
  endforeach()
endfunction()

if(SLUICE_PRECOMPILED)
  add_library(sluice_std STATIC EXCLUDE_FROM_ALL ${PROJECT_SOURCE_DIR}/cmake/precompiled.cpp)
  target_link_libraries(sluice_std PRIVATE sluice::build_options)
  target_precompile_headers(sluice_std PRIVATE ${sluice_std_headers})
  foreach(folder base config dynamo host)
    sluice_precompile(sluice_std ${PROJECT_SOURCE_DIR}/${folder} STATIC_LIBRARY)
  endforeach()
  if(SLUICE_TESTS)
    add_executable(sluice_std_tests EXCLUDE_FROM_ALL ${PROJECT_SOURCE_DIR}/cmake/precompiled.cpp)
    target_link_libraries(sluice_std_tests PRIVATE sluice::build_options GTest::gmock GTest::gtest_main)
    target_compile_options(sluice_std_tests PRIVATE ${sluice_test_options})
    target_precompile_headers(sluice_std_tests PRIVATE ${sluice_std_headers} <gmock/gmock.h> <gtest/gtest.h>)
    sluice_precompile(sluice_std_tests ${PROJECT_SOURCE_DIR}/tests EXECUTABLE ${sluice_test_options})
    # Beside the tests they only have to build; those that measure are built without tests.
    if(SLUICE_BENCH)
      sluice_precompile(sluice_std_tests ${PROJECT_SOURCE_DIR}/bench EXECUTABLE ${sluice_test_options})
    endif()
  endif()
endif()
