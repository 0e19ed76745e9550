# What does the embedded store do alone, and how near is that to SQLite itself?
add_executable(sqlite_bench ${CMAKE_CURRENT_LIST_DIR}/sqlite_bench.cpp ${CMAKE_CURRENT_LIST_DIR}/raw_sqlite.cpp)
target_include_directories(sqlite_bench PRIVATE ${PROJECT_SOURCE_DIR})
target_link_libraries(sqlite_bench PRIVATE sluice::build_options sluice::sqlite_store SQLite::SQLite3)
