#include "publishing/publishing.hpp"

#include <openssl/evp.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/algorithm/hex.hpp>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <stdexcept>
#include <system_error>
#include <utility>

namespace publishing {

void Descriptor::reset(int fd) {
  const int error = errno;
  if (open()) {
    ::close(fd_);
  }
  fd_ = fd;
  errno = error;
}

bool has_control(std::string_view text) { return std::any_of(text.begin(), text.end(), &is_control); }

bool consists_of(std::string_view text, std::string_view others) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [&](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           others.find(c) != std::string_view::npos;
  });
}

std::string one_line(std::string_view text, std::size_t limit) {
  return header_value(text.substr(0, limit)) + (text.size() > limit ? "..." : "");
}

std::string header_value(std::string_view text) {
  std::string value(text);
  std::replace_if(value.begin(), value.end(), &is_control, ' ');
  return value;
}

bool matches(std::string_view pattern, std::string_view text) {
  std::size_t at = 0;
  std::size_t seen = 0;
  std::size_t star = std::string_view::npos;  // the last star, and how much of the text it has taken
  std::size_t taken = 0;
  while (seen < text.size()) {
    if (at < pattern.size() && pattern[at] == '*') {
      star = at++;
      taken = seen;
    } else if (at < pattern.size() && pattern[at] == text[seen]) {
      ++at;
      ++seen;
    } else if (star != std::string_view::npos) {
      at = star + 1;
      seen = ++taken;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', at) == std::string_view::npos;
}

std::string hexadecimal(const unsigned char* bytes, std::size_t size) {
  std::string text;
  boost::algorithm::hex_lower(bytes, bytes + size, std::back_inserter(text));
  return text;
}

std::string sha256_hex(std::string_view bytes) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned size = 0;
  if (EVP_Digest(bytes.data(), bytes.size(), digest.data(), &size, EVP_sha256(), nullptr) != 1) {
    throw std::runtime_error("the cryptography library of this machine has no SHA-256");
  }
  return hexadecimal(digest.data(), size);
}

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

Attributes published_attributes(const sluice::Message& message, const Envelope& envelope,
                                const std::vector<std::string>& names) {
  Attributes all;
  const auto add = [&all](std::string_view name, std::string_view value) { all.emplace_back(name, value); };
  if (!envelope.event.empty()) {
    add("Event", envelope.event);
  }
  add("Producer", envelope.producer);
  if (message.attribute("tombstone")) {
    add("Tombstone", "true");
  }
  for (const std::string& name : names) {
    if (const auto value = message.attribute(name)) {
      add(name, *value);
    }
  }
  return all;
}

void refuse(const std::string& option, const std::string& why) {
  throw std::invalid_argument("the option \"" + option + "\" " + why);
}

std::string quoted(std::span<const std::string_view> words) {
  std::string all;
  for (const std::string_view word : words) {
    all += (all.empty() ? "\"" : ", \"") + std::string(word) + "\"";
  }
  return all;
}

std::string one_of(const sluice::Options& options, const char* name, std::span<const std::string_view> words) {
  auto value = options.get<std::string>(name);
  if (std::find(words.begin(), words.end(), value) == words.end()) {
    refuse(name, "must be one of " + quoted(words) + "; it is \"" + value + "\"");
  }
  return value;
}

std::optional<sluice_log_level> log_level(const sluice::Options& options, const char* name, bool may_be_off) {
  constexpr std::array<std::string_view, 6> kWords{"trace", "debug", "info", "warn", "error", "off"};
  const auto word = one_of(options, name, std::span(kWords).first(may_be_off ? 6 : 5));
  return word == "off" ? std::nullopt
                       : std::optional(static_cast<sluice_log_level>(std::find(kWords.begin(), kWords.end(), word) -
                                                                     kWords.begin()));
}

std::int64_t number_in(const sluice::Options& options, const char* name, std::int64_t least, std::int64_t most) {
  const auto value = options.get<std::int64_t>(name);
  if (value < least || value > most) {
    refuse(name, "must be from " + std::to_string(least) + " to " + std::to_string(most) + "; it is " +
                     std::to_string(value));
  }
  return value;
}

std::string plain_text(const sluice::Options& options, const char* name) {
  std::string text = options.get(name, "");
  if (has_control(text)) {
    refuse(name, "has a control character in it");
  }
  return text;
}

std::string readable_file(const sluice::Options& options, const char* name) {
  std::string file = plain_text(options, name);
  if (options.has(name) && !std::ifstream(file)) {
    refuse(name, "names \"" + file + "\", which cannot be read");
  }
  return file;
}

std::string existing_folder(const sluice::Options& options, const char* name) {
  std::string folder = options.get(name, "");
  std::error_code failure;
  if (options.has(name) && !std::filesystem::is_directory(folder, failure)) {
    refuse(name, "must be a folder that exists; \"" + folder + "\" is none");
  }
  return folder;
}

std::chrono::milliseconds bounded(const sluice::Options& options, const char* name, std::chrono::milliseconds least,
                                  std::chrono::milliseconds most) {
  const auto value = options.get<std::chrono::milliseconds>(name);
  if (value < least || value > most) {
    const auto longest = most % std::chrono::hours(24) == std::chrono::milliseconds(0)
                             ? std::to_string(most / std::chrono::hours(24)) + "d"
                             : std::to_string(most / std::chrono::seconds(1)) + "s";
    refuse(name, "must be from " + std::to_string(least.count()) + "ms to " + longest);
  }
  return value;
}

bool Reminder::due(std::string_view what, Time now) {
  const std::lock_guard lock(mutex_);
  if (told_.size() >= most_) {
    std::erase_if(told_, [&](const auto& told) { return now >= told.second + every_; });
  }
  const auto found = told_.find(std::string(what));
  if (found == told_.end() ? told_.size() >= most_ : now < found->second + every_) {
    return false;
  }
  told_[std::string(what)] = now;
  return true;
}

Outage::Outage(const sluice::Options& options, std::chrono::milliseconds wait)
    : snoozes_(one_of(options, "outage", {"retry", "snooze"}) == "snooze"), wait_(wait) {}

sluice::Outcome Outage::outcome(const std::string& why, const sluice::Context& context) {
  if (!snoozes_) {
    return sluice::retry(why);
  }
  if (reminder_.due({})) {
    context.warn(why + "; messages wait for it, and no attempt is counted");
  }
  return sluice::snooze(wait_);
}

Routes::Routes(const sluice::Options& options, std::vector<std::string> services, std::string fallback,
               std::string_view job)
    : producer_(options.get<std::string>("producer", std::string(job))),
      event_(options.get("event", "")),
      type_(options.get("aggregate_type", "")),
      services_(std::move(services)),
      fallback_name_(std::move(fallback)) {
  by_event_ = rules(options, "event_routes");
  by_type_ = rules(options, "routes");
  skipped_ = options.list("skip_events");
  unroutable_ = options.has("unroutable") ? one_of(options, "unroutable", {"reject", "retry", "snooze"}) : "";
  unroutable_wait_ = bounded(options, "unroutable_wait", std::chrono::milliseconds(10), std::chrono::hours(24));
  if (options.has(fallback_name_)) {
    fallback_ = target_of(fallback_name_, options.get<std::string>(fallback_name_));
  }
}

Envelope Routes::envelope(const sluice::Message& message) const {
  return {message.attribute("aggregate_type", type_),
          message.attribute("aggregate_id", message.group()),
          message.attribute("event", event_),
          message.queue(),
          message.id(),
          message.attribute("producer", producer_),
          message.attribute("source_id", {})};
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

std::variant<Target, sluice::Outcome> Routes::find(const Envelope& envelope, const sluice::Context& context) const {
  if (matches_any(skipped_, envelope.event)) {
    return sluice::discard("the event \"" + one_line(envelope.event) + "\" is in skip_events");
  }
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
  std::string why;
  if (envelope.type.empty()) {
    why = "the message has no attribute aggregate_type, so it goes nowhere";
  } else if (!name) {
    why = type + " is no ARN or RN, and no rule fits it";
  } else if (name->resource.empty()) {
    why = type + " names no resource behind its last colon";
  } else {
    why =
        type + " is of the service \"" + one_line(name->service) + "\", and this job publishes to " + services_.front();
  }
  return without_destination(why + "; add a rule to [job.options.routes], or set " + fallback_name_, envelope, context);
}

sluice::Outcome Routes::without_destination(const std::string& why, const Envelope& envelope,
                                            const sluice::Context& context) const {
  if (unroutable_ == "retry") {
    return sluice::retry(why);
  }
  if (unroutable_ == "reject" || (unroutable_.empty() && !envelope.of_outbox())) {
    return sluice::reject(why);
  }
  if (reminder_.due(envelope.row)) {
    context.warn(why + "; it waits for that, and no attempt is counted");
  }
  return sluice::snooze(unroutable_wait_);
}

}  // namespace publishing
