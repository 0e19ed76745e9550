#include "host/observe/log_senders.hpp"

#include <algorithm>
#include <utility>

namespace sluice::observe {

namespace {

LogLevel level_of(const config::LogSender& sender) { return static_cast<LogLevel>(sender.level); }

bool ignores(const config::LogSender& sender, const LogLine& line) {
  const auto within = [](std::string_view text, const std::string& part) {
    return text.find(part) != std::string_view::npos;
  };
  return std::any_of(sender.ignore.begin(), sender.ignore.end(), [&](const std::string& part) {
    return within(line.message, part) ||
           std::any_of(line.fields.begin(), line.fields.end(),
                       [&](const LogField& field) { return within(field.value(), part); });
  });
}

}  // namespace

LogSenders::LogSenders(Shipper& shipper, const Clock& clock, Random& random, std::vector<Member> members)
    : shipper_(shipper), clock_(clock), random_(random), members_(std::move(members)) {
  for (const Member& member : members_) {
    level_ = std::min(level_, level_of(member.settings));
  }
}

void LogSenders::take(const LogLine& line) {
  for (const Member& member : members_) {
    const config::LogSender& settings = member.settings;
    if (line.level < level_of(settings) || ignores(settings, line) ||
        (settings.sample_rate < 1 && random_.unit() >= settings.sample_rate)) {
      continue;
    }
    shipper_.put(*member.lane, member.encoder->encode(line, clock_.wall_now()));
  }
}

}  // namespace sluice::observe
