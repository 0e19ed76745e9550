#include "host/runtime/schedule_notice.hpp"

#include <cstdint>

#include "host/fleet/json_line.hpp"

namespace sluice::runtime {

std::string ScheduleNotice::write() const {
  fleet::JsonLine line;
  line.text("definition", definition);
  line.text("host", host);
  line.text("file", file);
  line.number("last", last.time_since_epoch().count());
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

}  // namespace sluice::runtime
