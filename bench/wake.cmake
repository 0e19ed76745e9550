# How soon does a host feel what another process sends? The client library in one process, `sluice run` in another.
set(SLUICE_PLUGIN_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bench/plugins")
sluice_add_plugin(wake_note ${CMAKE_CURRENT_LIST_DIR}/wake_note.cpp)
target_include_directories(wake_note PRIVATE ${PROJECT_SOURCE_DIR})
set(SLUICE_PLUGIN_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/plugins")

add_executable(wake_bench ${CMAKE_CURRENT_LIST_DIR}/wake_bench.cpp ${CMAKE_CURRENT_LIST_DIR}/wake_host.cpp
  ${CMAKE_CURRENT_LIST_DIR}/wake_load.cpp)
target_include_directories(wake_bench PRIVATE ${PROJECT_SOURCE_DIR})
target_compile_definitions(wake_bench PRIVATE
  SLUICE_PROGRAM="$<TARGET_FILE:sluice>" SLUICE_WAKE_PLUGINS="$<TARGET_FILE_DIR:wake_note>")
target_link_libraries(wake_bench PRIVATE sluice::build_options sluice::client sluice::base sluice::test_support)
add_dependencies(wake_bench sluice wake_note)
