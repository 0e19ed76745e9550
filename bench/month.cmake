# What does a month cost, in either layout and elsewhere?
if(TARGET sluice::dynamodb_store)
  include(${PROJECT_SOURCE_DIR}/tests/support/simulated_fleet/simulated_fleet.cmake)
  add_executable(month_bench ${CMAKE_CURRENT_LIST_DIR}/month_bench.cpp ${CMAKE_CURRENT_LIST_DIR}/month.cpp)
  target_include_directories(month_bench PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(month_bench PRIVATE sluice::build_options sluice::simulated_fleet sluice::cost fmt::fmt)
endif()
