include(${PROJECT_SOURCE_DIR}/tests/support/desk.cmake)
add_executable(dynamomq_bench ${CMAKE_CURRENT_LIST_DIR}/dynamomq_bench.cpp)
target_include_directories(dynamomq_bench PRIVATE ${PROJECT_SOURCE_DIR})
target_link_libraries(dynamomq_bench
  PRIVATE sluice::build_options sluice::dynamodb_store sluice::desk sluice::test_support Boost::json)
