#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>

#include "tests/cli/run_binary.hpp"

namespace sluice::test {

inline std::string fixture(const std::string& name) { return SLUICE_TEST_PLUGINS "/" + name + ".so"; }

/// What `sluice plugin validate FILE ... --json` found.
class Validated {
 public:
  Validated(const std::string& file, const std::vector<std::string>& more = {}, const std::string& step_limit = "3s") {
    std::vector<std::string> words{"plugin", "validate", file, "--json", "--seed", "7", "--step-limit", step_limit};
    words.insert(words.end(), more.begin(), more.end());
    const Finished finished = run_binary(words, {.input = {}, .folder = testing::TempDir()});
    exit_code = finished.exit_code;
    err = finished.err;
    if (!finished.out.empty()) {
      report = boost::json::parse(finished.out).as_object();
    }
  }

  /// "bodies: error: it ended the process ... (in the step: ...)", in the order of the checks.
  std::vector<std::string> findings() const {
    std::vector<std::string> lines;
    for (const auto& check : report.at("checks").as_array()) {
      for (const auto& finding : check.at("findings").as_array()) {
        EXPECT_FALSE(finding.at("why").as_string().empty());
        EXPECT_FALSE(finding.at("mend").as_string().empty());
        lines.push_back(text(check.at("check")) + ": " + text(finding.at("level")) + ": " + text(finding.at("what")) +
                        " (" + text(finding.at("where")) + ")");
      }
    }
    return lines;
  }
  /// "pass", "warn", "fail" or "skip"; empty: it was not made.
  std::string verdict(const std::string& name) const {
    for (const auto& check : report.at("checks").as_array()) {
      if (text(check.at("check")) == name) {
        return text(check.at("verdict"));
      }
    }
    return {};
  }

  int exit_code = -1;
  std::string err;
  boost::json::object report;

 private:
  static std::string text(const boost::json::value& value) { return std::string(value.as_string()); }
};

}  // namespace sluice::test
