#include "tests/cli/transcript.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <regex>
#include <sstream>

namespace sluice::test {

namespace {

std::string with_prefix(const std::string& prefix, const std::string& text) {
  std::string out;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    out += prefix + line + "\n";
  }
  return out;
}

}  // namespace

void Transcript::run(const std::vector<std::string>& words) {
  const Finished finished = run_binary(words, options_);
  text_ += "$ " + name_;
  for (const std::string& word : words) {
    const bool plain = word.find_first_of(" <>&'\"") == std::string::npos && !word.empty();
    text_ += " " + scrubbed(plain ? word : "'" + word + "'");
  }
  text_ += "\n" + scrubbed(finished.out);
  if (!finished.out.empty() && finished.out.back() != '\n') {
    text_ += "(no line break)\n";
  }
  text_ += with_prefix("! ", scrubbed(finished.err));
  if (finished.exit_code != 0) {
    text_ += "(exit " + std::to_string(finished.exit_code) + ")\n";
  }
  text_ += "\n";
}

std::string Transcript::scrubbed(std::string text) const {
  for (const auto& [hidden, name] : hidden_) {
    for (auto at = text.find(hidden); at != std::string::npos; at = text.find(hidden, at + name.size())) {
      text.replace(at, hidden.size(), name);
    }
  }
  static const std::vector<std::pair<std::regex, std::string>> kMoving = {
      {std::regex("20[0-9]{2}-[0-9]{2}-[0-9]{2}T[0-9:.]+Z"), "<time>"},
      {std::regex("\"oldest_ready_seconds\": [0-9.]+"), "\"oldest_ready_seconds\": <seconds>"},
      {std::regex("\"next\": \"[^\"]+\""), "\"next\": \"<cursor>\""},
      {std::regex("\\((in )?[0-9]+[smhd]( ago)?\\)"), "(<while>)"},
      // Ages in tables keep their column.
      {std::regex("( +)[0-9]+s(?= |\\n)"), "$1?s"},
  };
  for (const auto& [moving, name] : kMoving) {
    text = std::regex_replace(text, moving, name);
  }
  return text;
}

void expect_golden(const std::string& name, const std::string& text) {
  const std::string file = std::string(SLUICE_GOLDEN_DIR) + "/" + name + ".txt";
  if (std::getenv("SLUICE_UPDATE_GOLDEN") != nullptr) {
    std::ofstream(file) << text;
  }
  std::ostringstream golden;
  golden << std::ifstream(file).rdbuf();
  EXPECT_EQ(text, golden.str()) << file;
}

}  // namespace sluice::test
