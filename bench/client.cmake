add_executable(client_bench ${CMAKE_CURRENT_LIST_DIR}/client_bench.cpp)
target_include_directories(client_bench PRIVATE ${PROJECT_SOURCE_DIR})
target_link_libraries(client_bench PRIVATE sluice::build_options sluice::client_core sluice::test_support Boost::json)
