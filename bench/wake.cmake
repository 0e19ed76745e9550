# How soon does a host feel what another process sends? The client library in one process, `sluice run` in another.
set(SLUICE_PLUGIN_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bench/plugins")
sluice_add_plugin(wake_note ${CMAKE_CURRENT_LIST_DIR}/wake_note.cpp)
target_include_directories(wake_note PRIVATE ${PROJECT_SOURCE_DIR})
set(SLUICE_PLUGIN_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/plugins")

add_library(sluice_wake_host STATIC ${CMAKE_CURRENT_LIST_DIR}/wake_host.cpp)
target_include_directories(sluice_wake_host PUBLIC ${PROJECT_SOURCE_DIR})
target_compile_definitions(sluice_wake_host PUBLIC SLUICE_PROGRAM="$<TARGET_FILE:sluice>"
  PRIVATE SLUICE_WAKE_PLUGINS="$<TARGET_FILE_DIR:wake_note>")
target_link_libraries(sluice_wake_host PUBLIC sluice::client sluice::test_support PRIVATE sluice::build_options)
add_dependencies(sluice_wake_host sluice wake_note)

add_executable(wake_bench ${CMAKE_CURRENT_LIST_DIR}/wake_bench.cpp ${CMAKE_CURRENT_LIST_DIR}/wake_load.cpp)
target_link_libraries(wake_bench PRIVATE sluice::build_options sluice_wake_host)

# What do the commands that people use take?
add_executable(tool_bench ${CMAKE_CURRENT_LIST_DIR}/tool_bench.cpp)
target_link_libraries(tool_bench PRIVATE sluice::build_options sluice_wake_host)
