# How fast do messages go out to NATS JetStream through a real job?
add_executable(publish_bench ${CMAKE_CURRENT_LIST_DIR}/publish_bench.cpp)
target_include_directories(publish_bench PRIVATE ${PROJECT_SOURCE_DIR})
target_compile_definitions(publish_bench PRIVATE SLUICE_NATS_PLUGIN="$<TARGET_FILE:nats_publisher>")
pkg_check_modules(libnats_for_bench REQUIRED IMPORTED_TARGET libnats)
target_sources(publish_bench PRIVATE ${PROJECT_SOURCE_DIR}/tests/publishers/jet_stream.cpp)
target_link_libraries(publish_bench PRIVATE sluice::build_options sluice::work sluice::plugin sluice::test_support
  PkgConfig::libnats_for_bench)
add_dependencies(publish_bench nats_publisher)
