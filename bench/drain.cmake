# How fast does `sluice run` drain a DynamoDB queue, on the leased layout and on DynamoMQ's?
if(TARGET sluice::dynamodb_store)
  add_executable(drain_bench ${CMAKE_CURRENT_LIST_DIR}/drain_bench.cpp)
  target_compile_definitions(drain_bench PRIVATE SLUICE_WAKE_PLUGINS="$<TARGET_FILE_DIR:wake_note>")
  target_link_libraries(drain_bench PRIVATE sluice::build_options sluice_wake_host sluice::dynamodb_store
    Boost::json)
endif()
