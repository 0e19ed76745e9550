# From the host file to open queues. A target of its own, because commands that run no job need it too.
add_library(sluice_host_queues STATIC host_queues.cpp)
add_library(sluice::host_queues ALIAS sluice_host_queues)
target_include_directories(sluice_host_queues PUBLIC ${PROJECT_SOURCE_DIR})
target_link_libraries(sluice_host_queues PUBLIC sluice::base sluice::config sluice::cost sluice::queue sluice::dynamo sluice::observe sluice::leased_store sluice::outbox
  PRIVATE sluice::build_options sluice::sqlite_store sluice::dynamomq_store sluice::dedup_sender sluice::outbox_postgres sluice::mysql_outbox sluice::outbox_dynamodb sluice::tunnel)
