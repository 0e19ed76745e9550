# What does it cost to know who is to blame, and to run a handler in a process of its own?
add_executable(ledger_bench ${CMAKE_CURRENT_SOURCE_DIR}/ledger_bench.cpp)
target_link_libraries(ledger_bench PRIVATE sluice::build_options sluice::isolation benchmark::benchmark)

add_executable(runner_bench ${CMAKE_CURRENT_SOURCE_DIR}/runner_bench.cpp)
target_compile_definitions(runner_bench PRIVATE SLUICE_NOOP_PLUGIN="${PROJECT_BINARY_DIR}/bench/plugins/dispatch_noop.so")
target_link_libraries(runner_bench PRIVATE sluice::build_options sluice::isolation benchmark::benchmark)
add_dependencies(runner_bench dispatch_noop)

add_executable(recovery_bench ${CMAKE_CURRENT_SOURCE_DIR}/recovery_bench.cpp)
target_link_libraries(recovery_bench PRIVATE sluice::build_options sluice::runtime sluice::isolation)
