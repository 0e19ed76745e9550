# What the client's codec and signer cost a request.
add_executable(codec_bench ${CMAKE_CURRENT_LIST_DIR}/codec_bench.cpp)
target_link_libraries(codec_bench PRIVATE sluice::build_options sluice::dynamo benchmark::benchmark_main)
target_include_directories(codec_bench PRIVATE ${PROJECT_SOURCE_DIR})
