# How fast is an outbox drained in order, and how soon does a row reach its handler?
if(TARGET sluice::outbox_postgres)
  add_executable(outbox_bench ${CMAKE_CURRENT_LIST_DIR}/outbox_bench.cpp)
  target_include_directories(outbox_bench PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(outbox_bench PRIVATE sluice::build_options sluice::work sluice::outbox_postgres sluice::test_support)
endif()

# And a whole host, from an outbox to NATS JetStream?
if(TARGET sluice::outbox_postgres AND TARGET sluice::mysql_outbox)
  pkg_check_modules(libnats_for_outbox_bench REQUIRED IMPORTED_TARGET libnats)
  add_executable(outbox_relay_bench ${CMAKE_CURRENT_LIST_DIR}/outbox_relay_bench.cpp ${PROJECT_SOURCE_DIR}/tests/publishers/jet_stream.cpp)
  target_include_directories(outbox_relay_bench PRIVATE ${PROJECT_SOURCE_DIR})
  target_compile_definitions(outbox_relay_bench PRIVATE
    SLUICE_PROGRAM="$<TARGET_FILE:sluice>" SLUICE_NATS_PLUGIN="$<TARGET_FILE:nats_publisher>")
  target_link_libraries(outbox_relay_bench PRIVATE sluice::build_options sluice::mysql_outbox sluice::tunnel
    sluice::outbox_postgres sluice::test_support PkgConfig::libnats_for_outbox_bench)
  add_dependencies(outbox_relay_bench sluice nats_publisher)
endif()
