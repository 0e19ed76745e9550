#pragma once

#include <optional>
#include <sluice/handler.hpp>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "publishing/envelope.hpp"
#include "publishing/resource.hpp"

namespace publishing {

/// Why a message goes nowhere, for people.
struct Unroutable {
  std::string reason;
};

/// Which message goes where. Rules of the job come first, by event, then by type; then the type itself, where it is an
/// ARN or RN of this publisher's service; then the job's one destination.
///
/// Of several rules that fit, the one with the most characters that are no `*` decides, and of equals the first by the
/// alphabet. Immutable; thread-safe.
class Routes {
 public:
  static constexpr std::array<sluice::OptionSpec, 4> kOptions = {
      sluice::option<std::map<std::string, std::string>>(
          "routes", "Destinations by type: a type, in which * stands for any text, and where its messages go."),
      sluice::option<std::map<std::string, std::string>>(
          "event_routes", "Destinations by event, in the same way; they come before those by type."),
      sluice::option<std::string>("unroutable", "reject",
                                  "What becomes of a message that goes nowhere: reject, or retry by the job's policy."),
      sluice::option<std::vector<std::string>>("skip_events",
                                               "Events, in which * stands for any text, that are dropped unpublished."),
  };

  /// `services`: those whose ARNs and RNs are ours, the first of which we are named by; `fallback`: the option that
  /// names the job's one destination. Throws std::invalid_argument for a rule that leads to another service.
  Routes(const sluice::Options& options, std::vector<std::string> services, std::string fallback);

  std::variant<Target, Unroutable> find(const Envelope& envelope) const;
  /// What becomes of a message without a destination.
  sluice::Outcome without_destination(const Unroutable& why) const;
  bool skips(std::string_view event) const;

 private:
  struct Rule {
    std::string pattern;
    Target target;
  };
  using Rules = std::vector<Rule>;

  Rules rules(const sluice::Options& options, const char* name) const;
  Target target_of(const std::string& option, const std::string& text) const;
  bool is_ours(std::string_view service) const;
  static const Target* first(const Rules& rules, std::string_view text);

  std::vector<std::string> services_;
  std::string fallback_name_;
  std::optional<Target> fallback_;
  Rules by_event_;
  Rules by_type_;
  std::vector<std::string> skipped_;
  bool retries_ = false;
};

}  // namespace publishing
