// The tests' own program stands in for sluice: started as a Runner it is one.
#include <gtest/gtest.h>

#include "host/isolation/runner.hpp"

int main(int argc, char** argv) {
  if (sluice::isolation::is_runner(argc, argv)) {
    return sluice::isolation::run_runner();
  }
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
