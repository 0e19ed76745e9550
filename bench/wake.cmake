# How soon does a host feel what another process sends?
add_executable(wake_bench ${CMAKE_CURRENT_LIST_DIR}/wake_bench.cpp)
target_include_directories(wake_bench PRIVATE ${PROJECT_SOURCE_DIR})
target_link_libraries(wake_bench PRIVATE sluice::build_options sluice::sqlite_store)
