#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <sluice/handler.hpp>
#include <string>
#include <string_view>

/// How much output of one attempt may still go to the log; both streams share it.
class OutputBudget {
 public:
  explicit OutputBudget(std::size_t limit) : limit_(limit), left_(limit) {}

  /// Takes up to `size` from the budget and answers how much that was.
  std::size_t take(std::size_t size);
  /// True the first time after something was refused.
  bool just_exceeded();
  std::size_t limit() const { return limit_; }

 private:
  std::size_t limit_;
  std::size_t left_;
  bool exceeded_ = false;
  bool told_ = false;
};

/// One output stream on its way into the log, line by line, and the memory of its end.
class OutputStream {
 public:
  /// No `level`: not logged, only remembered.
  OutputStream(const sluice::Context& context, std::optional<sluice_log_level> level, OutputBudget& budget)
      : context_(context), level_(level), budget_(budget) {}
  OutputStream(const OutputStream&) = delete;
  OutputStream& operator=(const OutputStream&) = delete;

  void write(std::string_view bytes);
  /// Logs a last line that has no end.
  void finish();
  /// The last lines, joined by " | ".
  std::string tail() const;

 private:
  void end_line();

  const sluice::Context& context_;
  std::optional<sluice_log_level> level_;
  OutputBudget& budget_;
  std::string line_;
  std::string tail_;
};
