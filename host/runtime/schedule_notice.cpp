#include "host/runtime/schedule_notice.hpp"

#include <cstdint>

#include "base/text/hex.hpp"
#include "host/fleet/notice_json.hpp"

namespace sluice::runtime {

namespace {

/// Alike on every host.
std::uint64_t hash_of(const std::string& text) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const char c : text) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  }
  return hash;
}

}  // namespace

std::string ScheduleNotice::write() const {
  fleet::NoticeWriter line;
  line.put("definition", definition);
  line.put("host", host);
  line.put("file", file);
  line.put("last", last.time_since_epoch().count());
  return std::move(line).finish();
}

std::optional<ScheduleNotice> ScheduleNotice::read(std::string_view text) {
  ScheduleNotice notice;
  std::int64_t last = 0;
  const auto read = fleet::read_object(text, "the notice", [&](JsonReader& json, const std::string& member) {
    return member == "definition" ? fleet::read_into(json, notice.definition)
           : member == "host"     ? fleet::read_into(json, notice.host)
           : member == "file"     ? fleet::read_into(json, notice.file)
           : member == "last"     ? fleet::read_into(json, last)
                                  : json.skip();
  });
  if (!read) {
    return std::nullopt;
  }
  notice.last = config::ScheduleTimes::Time(std::chrono::seconds{last});
  return notice;
}

std::string definition_of(const config::ScheduleConfig& schedule) {
  std::string content = schedule.body + '\0' + schedule.content_type + '\0' + schedule.group + '\0' + schedule.priority;
  for (const auto& [name, value] : schedule.attributes) {
    content += '\0' + name + '\0' + value;
  }
  const std::string when = schedule.cron.empty() ? "every " + config::format_duration(schedule.every)
                                                 : "\"" + schedule.cron + "\" in " + schedule.time_zone;
  return when + ", message " + hex_digits(hash_of(content), 8) + " to queue " + schedule.queue;
}

}  // namespace sluice::runtime
