# How our own code is compiled: warnings, sanitizers, position independence. Linked by every target of ours, PRIVATEly
# through the folder's library, so that nobody who embeds the SDK inherits it.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_C_STANDARD 11)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

find_program(SLUICE_CCACHE ccache)
if(SLUICE_CCACHE)
  # With precompiled headers it caches nothing unless it is told so.
  set(launcher "${CMAKE_COMMAND}" -E env CCACHE_SLOPPINESS=pch_defines,time_macros "${SLUICE_CCACHE}")
  set(CMAKE_CXX_COMPILER_LAUNCHER ${launcher})
  set(CMAKE_C_COMPILER_LAUNCHER ${launcher})
endif()

add_library(sluice_build_options INTERFACE)
add_library(sluice::build_options ALIAS sluice_build_options)
# gcc takes a designated initialiser that leaves out a member for a slip; here it means the default.
target_compile_options(sluice_build_options INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor
  -Wno-missing-field-initializers)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # gcc 12 takes an empty std::optional's storage for a value in optimised code, and the short buffer of a std::string for
  # all that it may hold, of which it only speaks where the standard library's headers are precompiled.
  target_compile_options(sluice_build_options INTERFACE -Wno-maybe-uninitialized -Wno-array-bounds -Wno-stringop-overflow
    -Wno-stringop-overread)
  # It takes a source that is compiled with others for a header, whose classes may have nothing in them that is the source's own.
  target_compile_options(sluice_build_options INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-subobject-linkage>)
endif()
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  target_compile_options(sluice_build_options INTERFACE -Wthread-safety)
endif()
if(SLUICE_WERROR)
  target_compile_options(sluice_build_options INTERFACE -Werror)
endif()

if(SLUICE_SANITIZE)
  add_compile_options(-fsanitize=${SLUICE_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${SLUICE_SANITIZE})
endif()

if(SLUICE_FUZZ)
  # What is fuzzed must count its edges too, or the fuzzer sees nothing but the harness. All sources alike: they share precompiled headers.
  add_compile_options(-fsanitize=fuzzer-no-link)
  add_link_options(-fsanitize=fuzzer-no-link)
endif()

if(SLUICE_GUARDS_SWITCHABLE)
  add_compile_definitions(SLUICE_GUARDS_SWITCHABLE)
endif()

find_package(Threads REQUIRED)
target_link_libraries(sluice_build_options INTERFACE Threads::Threads)
