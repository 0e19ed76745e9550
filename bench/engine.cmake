# What does the engine cost, from claim to settle, and how soon does a message start?
if(TARGET sluice::sqlite_store)
  add_executable(engine_bench ${CMAKE_CURRENT_LIST_DIR}/engine_bench.cpp ${CMAKE_CURRENT_LIST_DIR}/raw_sqlite.cpp)
  target_include_directories(engine_bench PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(engine_bench PRIVATE sluice::build_options sluice::work sluice::sqlite_store SQLite::SQLite3)
endif()
