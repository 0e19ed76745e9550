#include "publishing/routes.hpp"

#include <algorithm>
#include <array>
#include <stdexcept>
#include <utility>

#include "publishing/text.hpp"

namespace publishing {

std::optional<ResourceName> parse_resource_name(std::string_view text) {
  std::array<std::string_view, 5> fields;
  std::string_view rest = text;
  for (std::string_view& field : fields) {
    const std::size_t colon = rest.find(':');
    if (colon == std::string_view::npos) {
      return std::nullopt;
    }
    field = rest.substr(0, colon);
    rest.remove_prefix(colon + 1);
  }
  if (fields[0] != "arn" && fields[0] != "rn") {
    return std::nullopt;
  }
  return ResourceName{text, fields[1], fields[2], fields[3], fields[4], rest};
}

std::string Envelope::unique_id() const {
  std::string text(source_id);
  if (source_id.empty()) {
    text += producer;
    text += '/';
    text += source;
  }
  text += '/';
  text += row;
  return text;
}

Identity::Identity(const sluice::Options& options, std::string_view job)
    : producer_(options.get<std::string>("producer", std::string(job))),
      event_(options.get("event", "")),
      type_(options.get("aggregate_type", "")) {}

Envelope Identity::envelope(const sluice::Message& message) const {
  return {message.attribute("aggregate_type", type_),
          message.attribute("aggregate_id", message.group()),
          message.attribute("event", event_),
          message.queue(),
          message.id(),
          message.attribute("producer", producer_),
          message.attribute("source_id", {})};
}

void refuse(const std::string& option, const std::string& why) {
  throw std::invalid_argument("the option \"" + option + "\" " + why);
}

std::string one_of(const sluice::Options& options, const char* name, std::initializer_list<std::string_view> words) {
  auto value = options.get<std::string>(name);
  if (std::find(words.begin(), words.end(), value) == words.end()) {
    std::string known;
    for (const std::string_view word : words) {
      known += known.empty() ? "\"" : ", \"";
      known += std::string(word) + "\"";
    }
    refuse(name, "must be one of " + known + "; it is \"" + value + "\"");
  }
  return value;
}

std::chrono::milliseconds bounded(const sluice::Options& options, const char* name, std::chrono::milliseconds least,
                                  std::chrono::milliseconds most) {
  const auto value = options.get<std::chrono::milliseconds>(name);
  if (value < least || value > most) {
    refuse(name,
           "must be from " + std::to_string(least.count()) + "ms to " + std::to_string(most.count() / 1000) + "s");
  }
  return value;
}

Routes::Routes(const sluice::Options& options, std::vector<std::string> services, std::string fallback)
    : services_(std::move(services)), fallback_name_(std::move(fallback)) {
  by_event_ = rules(options, "event_routes");
  by_type_ = rules(options, "routes");
  skipped_ = options.list("skip_events");
  retries_ = one_of(options, "unroutable", {"reject", "retry"}) == "retry";
  if (options.has(fallback_name_)) {
    fallback_ = target_of(fallback_name_, options.get<std::string>(fallback_name_));
  }
}

Routes::Rules Routes::rules(const sluice::Options& options, const char* name) const {
  Rules rules;
  const auto written = options.map(name);
  rules.reserve(written.size());
  for (const auto& [pattern, text] : written) {
    if (pattern.empty()) {
      refuse(name, "has a rule for an empty text; \"*\" fits everything");
    }
    rules.push_back({pattern, target_of(name, text)});
  }
  const auto literal = [](const Rule& rule) {
    return static_cast<std::ptrdiff_t>(rule.pattern.size()) - std::count(rule.pattern.begin(), rule.pattern.end(), '*');
  };
  std::stable_sort(rules.begin(), rules.end(),
                   [&](const Rule& one, const Rule& two) { return literal(one) > literal(two); });
  return rules;
}

Target Routes::target_of(const std::string& option, const std::string& text) const {
  const auto name = parse_resource_name(text);
  if (name && !is_ours(name->service)) {
    refuse(option, "leads to \"" + one_line(text) + "\", which is of the service \"" + one_line(name->service) +
                       "\"; this handler publishes to " + services_.front());
  }
  Target target{name ? std::string(name->resource) : text, text};
  if (target.name.empty()) {
    refuse(option, "leads to \"" + one_line(text) + "\", which names nothing");
  }
  return target;
}

bool Routes::is_ours(std::string_view service) const {
  return std::find(services_.begin(), services_.end(), service) != services_.end();
}

const Target* Routes::first(const Rules& rules, std::string_view text) {
  const auto found =
      std::find_if(rules.begin(), rules.end(), [&](const Rule& rule) { return matches(rule.pattern, text); });
  return found == rules.end() ? nullptr : &found->target;
}

std::variant<Target, Unroutable> Routes::find(const Envelope& envelope) const {
  const Target* rule = envelope.event.empty() ? nullptr : first(by_event_, envelope.event);
  if (rule == nullptr && !envelope.type.empty()) {
    rule = first(by_type_, envelope.type);
  }
  if (rule != nullptr) {
    return *rule;
  }
  const auto name = parse_resource_name(envelope.type);
  if (name && is_ours(name->service) && !name->resource.empty()) {
    return Target{std::string(name->resource), std::string(envelope.type)};
  }
  if (fallback_) {
    return *fallback_;
  }
  const std::string type = "the type \"" + one_line(envelope.type) + "\"";
  const std::string mend = "; add a rule to [job.options.routes], or set " + fallback_name_;
  if (envelope.type.empty()) {
    return Unroutable{"the message has no attribute aggregate_type, so it goes nowhere" + mend};
  }
  if (!name) {
    return Unroutable{type + " is no ARN or RN, and no rule fits it" + mend};
  }
  if (name->resource.empty()) {
    return Unroutable{type + " names no resource behind its last colon" + mend};
  }
  return Unroutable{type + " is of the service \"" + one_line(name->service) + "\", and this job publishes to " +
                    services_.front() + mend};
}

sluice::Outcome Routes::without_destination(const Unroutable& why) const {
  return retries_ ? sluice::retry(why.reason) : sluice::reject(why.reason);
}

bool Routes::skips(std::string_view event) const {
  return std::any_of(skipped_.begin(), skipped_.end(),
                     [&](const std::string& pattern) { return matches(pattern, event); });
}

}  // namespace publishing
