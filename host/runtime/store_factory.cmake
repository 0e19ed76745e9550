# From the host file to an open store. A target of its own, because commands that run no job need it too.
add_library(sluice_store_factory STATIC dynamodb_connection.cpp dynamodb_cost.cpp store_factory.cpp)
add_library(sluice::store_factory ALIAS sluice_store_factory)
target_include_directories(sluice_store_factory PUBLIC ${PROJECT_SOURCE_DIR})
target_link_libraries(sluice_store_factory PUBLIC sluice::base sluice::config sluice::queue sluice::dynamo
  PRIVATE sluice::build_options sluice::observe sluice::sqlite_store sluice::dynamomq_store)
