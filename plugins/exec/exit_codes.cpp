#include "exit_codes.hpp"

#include <charconv>
#include <stdexcept>
#include <string_view>
#include <utility>

namespace {

using std::chrono::nanoseconds;

constexpr std::int64_t kLongestSeconds = 7 * 24 * 3600;

/// "500ms", "30s", "5m", "2h" or "1d", up to a week.
std::optional<nanoseconds> parse_delay(std::string_view text) {
  std::int64_t count = -1;
  const auto [rest, code] = std::from_chars(text.data(), text.data() + text.size(), count);
  const std::string_view unit(rest, static_cast<std::size_t>(text.data() + text.size() - rest));
  const std::int64_t milliseconds = unit == "ms"  ? 1
                                    : unit == "s" ? 1000
                                    : unit == "m" ? 60'000
                                    : unit == "h" ? 3'600'000
                                    : unit == "d" ? 86'400'000
                                                  : 0;
  if (code != std::errc() || milliseconds == 0 || count < 0 || count > kLongestSeconds * 1000 / milliseconds) {
    return std::nullopt;
  }
  return std::chrono::milliseconds(count * milliseconds);
}

std::optional<Verdict> parse_verdict(std::string_view text) {
  const std::size_t space = text.find(' ');
  const std::string_view word = text.substr(0, space);
  std::optional<nanoseconds> delay;
  if (space != std::string_view::npos) {
    delay = parse_delay(text.substr(space + 1));
    if (!delay || (word != "retry" && word != "snooze")) {
      return std::nullopt;
    }
  }
  if (word == "done") return Verdict{SLUICE_DONE, {}};
  if (word == "retry") return Verdict{SLUICE_RETRY, delay};
  if (word == "snooze" && delay) return Verdict{SLUICE_SNOOZE, delay};
  if (word == "reject") return Verdict{SLUICE_REJECT, {}};
  if (word == "discard") return Verdict{SLUICE_DISCARD, {}};
  if (word == "release") return Verdict{SLUICE_RELEASE, {}};
  return std::nullopt;
}

std::optional<int> parse_code(std::string_view text) {
  int code = -1;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), code);
  const bool whole = error == std::errc() && rest == text.data() + text.size();
  return whole && code >= 0 && code <= 255 ? std::optional(code) : std::nullopt;
}

}  // namespace

sluice::Outcome Verdict::outcome(std::string reason) const {
  switch (status) {
    case SLUICE_DONE:
      return sluice::done();
    case SLUICE_SNOOZE:
      return sluice::snooze(*delay);
    case SLUICE_REJECT:
      return sluice::reject(std::move(reason));
    case SLUICE_DISCARD:
      return sluice::discard(std::move(reason));
    case SLUICE_RELEASE:
      return sluice::release();
    default:
      return delay ? sluice::retry(*delay, std::move(reason)) : sluice::retry(std::move(reason));
  }
}

ExitCodes::ExitCodes(const std::map<std::string, std::string>& changes)
    : verdicts_{{0, {SLUICE_DONE, {}}}, {65, {SLUICE_REJECT, {}}}, {75, {SLUICE_RETRY, {}}}} {
  for (const auto& [key, value] : changes) {
    const std::optional<Verdict> verdict = parse_verdict(value);
    if (!verdict) {
      throw std::invalid_argument("the option \"exit_codes\" has \"" + value + "\" for \"" + key +
                                  "\"; it may be done, retry, retry 30s, snooze 5m, reject, discard or release");
    }
    const std::optional<int> code = parse_code(key);
    if (code) {
      verdicts_[*code] = *verdict;
    } else if (key == "default") {
      default_ = *verdict;
    } else if (key == "signal") {
      signal_ = *verdict;
    } else {
      throw std::invalid_argument("the option \"exit_codes\" has \"" + key +
                                  "\"; it may name exit codes from 0 to 255, \"default\" and \"signal\"");
    }
  }
}

const Verdict& ExitCodes::of_exit(int code) const {
  const auto found = verdicts_.find(code);
  return found == verdicts_.end() ? default_ : found->second;
}
