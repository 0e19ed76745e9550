#pragma once

#include <gtest/gtest.h>

#include "host/isolation/runner.hpp"

namespace sluice::isolation {

/// The handler of the fixture of that name, for the job "orders".
inline RunnerSpec fixture_spec(const std::string& fixture) {
  RunnerSpec spec{{"orders", SLUICE_TEST_PLUGINS "/" + fixture + ".so", fixture}, {}, {}, {}};
  auto file = open_plugin(spec.plugin);
  EXPECT_TRUE(file) << file.error().message();
  spec.file = *file;
  return spec;
}

/// Those of the fixture "bomb".
inline void add_bomb_options(RunnerSpec& spec, const std::string& create = {}) {
  spec.options.push_back({"path", SLUICE_OPTION_STRING, "", 0, 0, {}});
  spec.options.push_back({"sleep", SLUICE_OPTION_DURATION, "0s", 0, 0, {}});
  spec.options.push_back({"create", SLUICE_OPTION_STRING, create, 0, 0, {}});
}

}  // namespace sluice::isolation
