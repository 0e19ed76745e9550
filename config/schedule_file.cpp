#include <array>
#include <utility>

#include "config/schedule_times.hpp"
#include "config/sections.hpp"
#include "config/syntax.hpp"
#include "config/time_zone.hpp"

namespace sluice::config {

namespace {

using std::chrono::hours;
using std::chrono::seconds;

constexpr std::array<Choice<CatchUp>, 3> kCatchUps{
    {{"none", CatchUp::none}, {"last", CatchUp::last}, {"all", CatchUp::all}}};
constexpr std::size_t kMostText = 256UL * 1024;

const char* text_complaint(const std::string& text) {
  return text.size() <= kMostText ? nullptr : "at most 256 KiB; send where the rest lies";
}
const char* type_complaint(const std::string& text) {
  return !text.empty() && text.size() <= 255 ? nullptr : "a content type, such as \"application/json\"";
}
const char* priority_complaint(const std::string& text) {
  return text == "critical" || text == "high" || text == "normal" || text == "low"
             ? nullptr
             : "\"critical\", \"high\", \"normal\" or \"low\"";
}
const char* any_complaint(const std::string&) { return nullptr; }

void read_cron(Section& section, Reader& reader, ScheduleConfig& schedule) {
  section.read("cron", schedule.cron, any_complaint);
  const Member* cron = section.find("cron");
  if (cron == nullptr || !std::holds_alternative<std::string>(cron->value.content)) {
    return;
  }
  const auto line = parse_cron(schedule.cron);
  if (const auto* wrong = std::get_if<std::string>(&line)) {
    reader.error(cron->value.place, section.naming("cron") + *wrong);
  }
}

void read_zone(Section& section, Reader& reader, ScheduleConfig& schedule) {
  section.read("time_zone", schedule.time_zone, any_complaint);
  const Member* zone = section.find("time_zone");
  if (zone == nullptr || !std::holds_alternative<std::string>(zone->value.content)) {
    return;
  }
  if (!TimeZone::find(schedule.time_zone)) {
    reader.error(zone->value.place,
                 section.naming("time_zone") + "names no time zone of this machine: \"" + abridged(schedule.time_zone) +
                     "\"; " +
                     (TimeZone::any_installed() ? "give its IANA name, such as \"Europe/Vienna\" or \"UTC\""
                                                : "its time zone data is missing: install the package tzdata"));
  }
}

void read_attributes(Section& section, Reader& reader, ScheduleConfig& schedule) {
  const Member* attributes = section.find("attributes");
  if (attributes == nullptr || std::holds_alternative<BrokenValue>(attributes->value.content)) {
    return;
  }
  const auto* table = std::get_if<Table>(&attributes->value.content);
  if (table == nullptr) {
    return reader.error(attributes->value.place,
                        section.naming("attributes") + "must be a table of strings, not " + kind_of(attributes->value));
  }
  for (const Member& member : *table) {
    if (const auto* text = std::get_if<std::string>(&member.value.content)) {
      schedule.attributes.emplace(member.key, *text);
    } else if (!std::holds_alternative<BrokenValue>(member.value.content)) {
      reader.error(member.value.place, section.naming("attributes") + "must hold strings only; '" +
                                           abridged(member.key) + "' is " + kind_of(member.value));
    }
  }
}

ScheduleConfig read_schedule(Section section, Reader& reader, const Member& member) {
  ScheduleConfig schedule;
  schedule.name = member.key;
  schedule.place = member.place;
  if (const char* expected = name_complaint(member.key)) {
    reader.error(member.place,
                 "a schedule's name must be " + std::string(expected) + "; it is \"" + abridged(member.key) + "\"");
  }
  read_cron(section, reader, schedule);
  section.read("every", schedule.every, {seconds(1), hours(7 * 24)});
  const Member* every = section.find("every");
  const bool cron = section.find("cron") != nullptr;
  if (cron == (every != nullptr)) {
    reader.error(member.place, section.title() + (cron ? " has both 'cron' and 'every'; keep one of them"
                                                       : " has neither 'cron' nor 'every'; say when it is due, as in "
                                                         "cron = \"30 6 * * MON-FRI\" or every = \"15m\""));
  } else if (every != nullptr && schedule.every % seconds(1) != Duration::zero()) {
    reader.error(every->value.place, section.naming("every") + "must be whole seconds");
  }
  read_zone(section, reader, schedule);
  if (!cron && section.find("time_zone") != nullptr) {
    reader.error(section.find("time_zone")->place,
                 section.naming("time_zone") + "goes with 'cron' only; an interval has none: leave it out");
  }
  section.read("catch_up", schedule.catch_up, kCatchUps);
  section.read("queue", schedule.queue, name_complaint);
  section.read("body", schedule.body, text_complaint);
  section.read("content_type", schedule.content_type, type_complaint);
  section.read("group", schedule.group, text_complaint);
  section.read("priority", schedule.priority, priority_complaint);
  read_attributes(section, reader, schedule);
  return schedule;
}

}  // namespace

void read_schedules(Section root, Reader& reader, const Table& tree, JobConfig& config) {
  Section schedules = root.section("schedule");
  for (const Member& top : tree) {
    const auto* table = std::get_if<Table>(&top.value.content);
    if (top.key != "schedule" || table == nullptr) {
      continue;
    }
    for (const Member& member : *table) {
      config.schedules.push_back(read_schedule(schedules.section(member.key), reader, member));
    }
  }
}

}  // namespace sluice::config
