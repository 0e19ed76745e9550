#include "host/runtime/progress_line.hpp"

namespace sluice::runtime {
namespace {

std::string grouped(std::uint64_t number) {
  std::string text = std::to_string(number);
  for (std::size_t place = text.size(); place > 3;) {
    place -= 3;
    text.insert(place, ",");
  }
  return text;
}

}  // namespace

std::string ProgressLine::next(const work::LedgerSnapshot& total, SteadyTime now) {
  const double seconds = std::chrono::duration<double>(now - last_).count();
  const std::uint64_t ended = total.ended();
  const double rate = seconds > 0 ? static_cast<double>(ended - last_ended_) / seconds : 0;
  last_ = now;
  last_ended_ = ended;

  std::string text = grouped(total.done) + " done";
  const auto add = [&text](std::uint64_t count, const char* name) {
    if (count > 0) {
      text += ", " + grouped(count) + " " + name;
    }
  };
  add(total.rejected, "rejected");
  add(total.retried, "retried");
  add(total.snoozed, "snoozed");
  add(total.discarded, "discarded");
  add(total.released, "released");
  add(total.lost, "lost");
  add(total.in_flight(), "in flight");
  return text + "; " + grouped(static_cast<std::uint64_t>(rate)) + "/s";
}

}  // namespace sluice::runtime
