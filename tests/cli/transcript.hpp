#pragma once

#include <string>
#include <vector>

#include "tests/cli/run_binary.hpp"

namespace sluice::test {

/// Runs command lines one after the other and writes down what each printed, as a text to be compared with a golden
/// file: "$ words", standard output, standard error behind "! ", and "(exit N)" for every N but zero.
class Transcript {
 public:
  /// `name` is what stands for the program; `options` hold for every run.
  Transcript(std::string name, BinaryOptions options) : name_(std::move(name)), options_(std::move(options)) {}

  /// What stands for a text that differs from run to run, such as a port.
  void hide(const std::string& text, const std::string& name) {
    if (!text.empty()) {
      hidden_.emplace_back(text, name);
    }
  }
  void run(const std::vector<std::string>& words);
  /// Runs without leaving a trace; for what a script needs and is not about.
  Finished quietly(const std::vector<std::string>& words) const { return run_binary(words, options_); }

  const std::string& text() const { return text_; }

 private:
  std::string scrubbed(std::string text) const;

  std::string name_;
  BinaryOptions options_;
  std::vector<std::pair<std::string, std::string>> hidden_;
  std::string text_;
};

/// Compares with the golden file of that name; with SLUICE_UPDATE_GOLDEN set it is written anew first.
void expect_golden(const std::string& name, const std::string& text);

}  // namespace sluice::test
