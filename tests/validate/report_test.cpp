#include "host/validate/report.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sluice::validate {
namespace {

Finding finding(Finding::Level level, const std::string& what) {
  return {"bodies", level, what, "here", "why", "mend"};
}

TEST(Report, AWordOfAPluginIsOneFieldOfOneLine) {
  Finding odd = finding(Finding::Level::warning, "a\tb\nc\x1b[31m\xff");
  odd.where.clear();
  const std::string line = told_finding(odd);
  EXPECT_EQ(line.find('\n'), std::string::npos);
  const auto fields = told_fields(line);
  ASSERT_EQ(fields.size(), 7U);
  const Finding back = read_finding(fields);
  EXPECT_EQ(back.check, "bodies");
  EXPECT_EQ(back.level, Finding::Level::warning);
  EXPECT_EQ(back.what, "a\\tb\\nc\\u001b[31m\\xff");
  EXPECT_EQ(back.where, "");
  EXPECT_EQ(back.mend, "mend");
}

TEST(Report, ALineThatIsNoFindingHarmsNobody) {
  EXPECT_EQ(read_finding(told_fields("")).what, "");
  EXPECT_EQ(read_finding(told_fields("found\tbodies")).level, Finding::Level::error);
}

TEST(CheckResult, TheWorstFindingIsTheVerdict) {
  CheckResult check{.check = "bodies", .handler = "greet"};
  EXPECT_EQ(to_string(check.verdict()), "pass");
  check.skipped = true;
  EXPECT_EQ(to_string(check.verdict()), "skip");
  check.add(finding(Finding::Level::warning, "odd"));
  EXPECT_EQ(to_string(check.verdict()), "warn");
  check.add(finding(Finding::Level::error, "broken"));
  check.add(finding(Finding::Level::error, "broken"));
  EXPECT_EQ(to_string(check.verdict()), "fail");
  EXPECT_EQ(check.count(Finding::Level::error), 1U) << "the same is told once";
}

TEST(RefusalFinding, SplitsWhatTheHostSaysIntoWhatAndMend) {
  const Finding split = refusal_finding("table", "has no handlers: name them in SLUICE_PLUGIN");
  EXPECT_EQ(split.what, "it has no handlers");
  EXPECT_EQ(split.mend, "name them in SLUICE_PLUGIN");
  const Finding whole = refusal_finding("load", "cannot be loaded: libx.so: invalid ELF header");
  EXPECT_EQ(whole.what, "it cannot be loaded: libx.so: invalid ELF header");
  EXPECT_NE(whole.mend, "");
}

}  // namespace
}  // namespace sluice::validate
