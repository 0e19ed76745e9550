# How far does the leased layout go, with how many hosts and shards, and what happens when they come and go?
if(TARGET sluice::dynamodb_store)
  include(${PROJECT_SOURCE_DIR}/tests/support/simulated_fleet/simulated_fleet.cmake)
  add_executable(scale_bench ${CMAKE_CURRENT_LIST_DIR}/scale_bench.cpp)
  target_include_directories(scale_bench PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(scale_bench PRIVATE sluice::build_options sluice::simulated_fleet)
endif()
