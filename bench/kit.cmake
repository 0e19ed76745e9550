# How long do an author's tests take? Cases of the test kit, each with an instance of its own.
add_executable(kit_bench ${CMAKE_CURRENT_SOURCE_DIR}/kit_bench.cpp)
target_link_libraries(kit_bench PRIVATE sluice::build_options sluice::sdk benchmark::benchmark)
