#include "host/validate/report.hpp"

#include <algorithm>
#include <array>
#include <boost/algorithm/string/split.hpp>

#include "base/ranges.hpp"
#include "base/text/joined.hpp"
#include "base/text/visible.hpp"

namespace sluice::validate {

Finding refusal_finding(std::string check, const std::string& why) {
  // The dynamic linker's own words name no mend.
  const std::size_t mend = why.starts_with("cannot be loaded") ? std::string::npos : why.rfind(": ");
  return {std::move(check),
          Finding::Level::error,
          "it " + why.substr(0, mend),
          {},
          "no host loads it",
          mend == std::string::npos ? "build it again on this system" : why.substr(mend + 2)};
}

CheckResult::Verdict CheckResult::verdict() const {
  if (count(Finding::Level::error) > 0) {
    return Verdict::failed;
  }
  if (!findings.empty()) {
    return Verdict::warned;
  }
  return skipped ? Verdict::skipped : Verdict::passed;
}

std::size_t CheckResult::count(Finding::Level level) const {
  const auto is_of = [level](const Finding& finding) { return finding.level == level; };
  return static_cast<std::size_t>(std::count_if(findings.begin(), findings.end(), is_of));
}

void CheckResult::add(Finding finding) {
  const auto same = [&finding](const Finding& known) { return known.what == finding.what; };
  if (std::none_of(findings.begin(), findings.end(), same)) {
    findings.push_back(std::move(finding));
  }
}

std::string_view to_string(CheckResult::Verdict verdict) {
  constexpr std::array<std::string_view, 4> kNames{"pass", "warn", "fail", "skip"};
  return kNames.at(static_cast<std::size_t>(verdict));
}

std::string_view to_string(Finding::Level level) { return level == Finding::Level::error ? "error" : "warning"; }

std::size_t Report::count(Finding::Level level) const {
  std::size_t count = 0;
  for (const CheckResult& check : checks) {
    count += check.count(level);
  }
  return count;
}

std::string told_line(const std::vector<std::string>& fields) { return joined(mapped(fields, visible), "\t"); }

std::vector<std::string> told_fields(std::string_view line) {
  std::vector<std::string> fields;
  boost::algorithm::split(fields, line, [](char c) { return c == '\t'; });
  return fields;
}

std::string told_finding(const Finding& finding) {
  return told_line({std::string(kFound), finding.check, std::string(to_string(finding.level)), finding.what,
                    finding.where, finding.why, finding.mend});
}

Finding read_finding(const std::vector<std::string>& fields) {
  const auto field = [&fields](std::size_t index) { return index < fields.size() ? fields[index] : std::string(); };
  const auto level = field(2) == to_string(Finding::Level::warning) ? Finding::Level::warning : Finding::Level::error;
  return {field(1), level, field(3), field(4), field(5), field(6)};
}

}  // namespace sluice::validate
