#pragma once

#include <cstdint>
#include <string>
#include <variant>

/// Cron lines: five fields of minute, hour, day of the month, month and day of the week.
namespace sluice::config {

/// At which local times something is due. Bit n stands for the value n. A value.
///
/// A day is due when its day of the month and its day of the week are, or, where both fields are restricted, when
/// either is: as cron has it.
struct CronLine {
  std::uint64_t minutes = 0;   ///< bits 0 to 59
  std::uint32_t hours = 0;     ///< bits 0 to 23
  std::uint32_t days = 0;      ///< bits 1 to 31
  std::uint32_t months = 0;    ///< bits 1 to 12
  std::uint32_t weekdays = 0;  ///< bits 0 to 6, Sunday is 0
  bool any_day = false;        ///< the day of the month is `*`
  bool any_weekday = false;    ///< the day of the week is `*`

  bool every_hour() const;
  bool has_day(int day, int month, int weekday) const;
};

/// Reads a line: numbers, `*`, ranges `a-b`, steps `*/n` and `a-b/n`, lists of them with commas, and JAN to DEC and SUN
/// to SAT by their names. Otherwise what is wrong with it and the mend, to follow the name of the key; a line that is
/// never due (the 31st of February) is wrong too.
std::variant<CronLine, std::string> parse_cron(const std::string& text);

}  // namespace sluice::config
