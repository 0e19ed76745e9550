#include <algorithm>
#include <cctype>
#include <cstdlib>

#include "tests/config/support.hpp"

namespace sluice::config {
namespace {

std::filesystem::path golden_folder() { return std::filesystem::path(SLUICE_SOURCE_DIR) / "tests/config/golden"; }

std::vector<std::string> golden_names() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(golden_folder())) {
    if (entry.path().extension() == ".toml") {
      names.push_back(entry.path().stem().string());
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    lines.push_back(line);
  }
  return lines;
}

/// What is only expected with '-', what is only there with '+', in the order of the errors.
std::string difference(const std::string& expected, const std::string& actual) {
  const std::vector<std::string> wanted = lines_of(expected);
  const std::vector<std::string> got = lines_of(actual);
  std::string text;
  for (const std::string& line : wanted) {
    text += std::find(got.begin(), got.end(), line) == got.end() ? "- " + line + "\n" : "";
  }
  for (const std::string& line : got) {
    text += std::find(wanted.begin(), wanted.end(), line) == wanted.end() ? "+ " + line + "\n" : "";
  }
  return text.empty() ? "the same lines in another order:\n" + actual : text;
}

class Golden : public testing::TestWithParam<std::string> {};

// Run with SLUICE_UPDATE_GOLDEN=1 to rewrite the expectations, then read the diff of the work tree.
TEST_P(Golden, ErrorsAreAsWritten) {
  const std::string& name = GetParam();
  const std::string text = file_text(golden_folder() / (name + ".toml"));
  const std::filesystem::path expectation = golden_folder() / (name + ".errors");
  const Environment environment =
      environment_of({{"QUEUE", "orders"}, {"EMPTY", ""}, {"WORDS", "eight"}, {"MANY", "409600"}});
  const bool is_host = name.rfind("host_", 0) == 0;
  const std::string errors = is_host ? errors_text(parse_host_config(text, name + ".toml", environment))
                                     : errors_text(parse_job_config(text, name + ".toml", environment));
  if (std::getenv("SLUICE_UPDATE_GOLDEN") != nullptr) {
    std::ofstream(expectation, std::ios::binary) << errors;
  }
  const std::string expected = file_text(expectation);
  ASSERT_FALSE(expected.empty()) << "no " << expectation;
  EXPECT_TRUE(expected == errors) << difference(expected, errors);
}

INSTANTIATE_TEST_SUITE_P(Config, Golden, testing::ValuesIn(golden_names()),
                         [](const auto& test) { return test.param; });

TEST(GoldenFolder, EveryExpectationHasItsText) {
  for (const auto& entry : std::filesystem::directory_iterator(golden_folder())) {
    std::filesystem::path text = entry.path();
    EXPECT_TRUE(std::filesystem::exists(text.replace_extension(".toml"))) << entry.path();
  }
}

}  // namespace
}  // namespace sluice::config
