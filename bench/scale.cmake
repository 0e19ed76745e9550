# How far does the leased layout go, with how many hosts and shards, and what happens when they come and go?
if(TARGET sluice::leased_store)
  add_executable(scale_bench ${CMAKE_CURRENT_LIST_DIR}/scale_bench.cpp ${CMAKE_CURRENT_LIST_DIR}/scale_world.cpp)
  target_include_directories(scale_bench PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(scale_bench PRIVATE sluice::build_options sluice::leased_store sluice::dynamodb_model sluice::test_support)
endif()
