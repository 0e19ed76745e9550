# What does a message cost between the worker and the handler? Through a real plugin, loaded as the host loads it.
set(SLUICE_PLUGIN_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bench/plugins")
sluice_add_plugin(dispatch_noop ${CMAKE_CURRENT_SOURCE_DIR}/dispatch_noop.cpp)
set(SLUICE_PLUGIN_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/plugins")

add_executable(dispatch_bench ${CMAKE_CURRENT_SOURCE_DIR}/dispatch_bench.cpp)
target_compile_definitions(dispatch_bench PRIVATE SLUICE_NOOP_PLUGIN="${PROJECT_BINARY_DIR}/bench/plugins/dispatch_noop.so")
target_link_libraries(dispatch_bench PRIVATE sluice::build_options sluice::plugin benchmark::benchmark)
add_dependencies(dispatch_bench dispatch_noop)
