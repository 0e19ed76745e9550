#pragma once

#include <boost/system/result.hpp>
#include <string>
#include <utility>
#include <vector>

#include "base/error.hpp"

namespace sluice::cli {

// Exit codes that scripts rely on; those from 64 on are sysexits.h's.
inline constexpr int kExitOk = 0;
inline constexpr int kExitFailure = 1;
inline constexpr int kExitUsage = 64;
inline constexpr int kExitInternal = 70;
inline constexpr int kExitConfiguration = 78;
// As the shell reports a process that the signal ended.
inline constexpr int kExitInterrupted = 130;
inline constexpr int kExitBrokenPipe = 141;

/// How a command ends: its exit code, and the lines on stderr that say why; one, except where several things are wrong
/// at once. A value.
class [[nodiscard]] Exit {
 public:
  // The default constructor exists because boost::system::result asks for it.
  Exit() = default;
  Exit(int code, std::string line) : code_(code), lines_{std::move(line)} {}
  Exit(int code, std::vector<std::string> lines) : code_(code), lines_(std::move(lines)) {}

  static Exit ok() { return {}; }
  static Exit usage(std::string message) { return {kExitUsage, std::move(message)}; }
  static Exit failure(std::string message) { return {kExitFailure, std::move(message)}; }
  static Exit failure(const Error& error) { return {kExitFailure, error.message()}; }

  int code() const { return code_; }
  const std::vector<std::string>& lines() const { return lines_; }

 private:
  int code_ = kExitOk;
  std::vector<std::string> lines_;
};

/// A value, or how the command ends without it.
template <typename T>
using OrExit = boost::system::result<T, Exit>;

}  // namespace sluice::cli
