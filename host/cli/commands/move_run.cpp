#include "host/cli/commands/move_run.hpp"

#include <algorithm>
#include <cmath>

#include "base/text/decimal.hpp"
#include "base/text/visible.hpp"
#include "host/cli/fleet_session.hpp"
#include "host/cli/views/message_view.hpp"
#include "host/cli/views/output.hpp"

namespace sluice::cli {

namespace {

using State = operate::Mover::Step::State;

constexpr int kMostFailures = 10;
constexpr Duration kFirstRest = std::chrono::milliseconds(250);
constexpr Duration kLongestRest = std::chrono::seconds(4);
/// Before, a rate is that of a batch or two.
constexpr Duration kFirstRate = std::chrono::milliseconds(500);
constexpr std::size_t kMostRefusals = 10'000;

std::string counted(std::uint64_t count, std::string_view what) {
  return count == 0 ? std::string() : ", " + std::to_string(count) + " " + std::string(what);
}

}  // namespace

MoveRun::MoveRun(operate::Mover& mover, const MoveOrder& order, QueueSession& session, Output output, Console& console)
    : mover_(mover),
      order_(order),
      session_(session),
      output_(output),
      console_(console),
      prices_(session.host().cost),
      began_(session.clock().steady_now()) {}

Exit MoveRun::run() {
  const End end = drive();
  console_.end_progress();
  report();
  return exit_of(end);
}

MoveRun::End MoveRun::drive() {
  const InterruptFlag interrupt;
  while (true) {
    const auto step = mover_.step();
    note(step.refusals);
    if (step.state == State::finished) {
      return End::finished;
    }
    if (step.state == State::failed) {
      error_ = step.error;
      if (!worth_another(step.error)) {
        return End::failed;
      }
      const Duration pause = std::min(kLongestRest, kFirstRest * (1 << std::min(failures_, 5)));
      wait_for_look(interrupt, pause);
    } else {
      failures_ = 0;
      show();
    }
    if (step.state == State::wait) {
      wait_for_look(interrupt, std::max<Duration>(step.until - session_.clock().steady_now(), Duration(1)));
    }
    if ((interrupt.raised() || !console_.writable()) && (mover_.at_rest() || failures_ > 3)) {
      return End::interrupted;
    }
  }
}

bool MoveRun::worth_another(const Error& error) {
  const bool passes =
      error.transient() || error.code() == ErrorCode::unknown_outcome || error.code() == ErrorCode::timeout;
  return ++failures_ <= kMostFailures && passes;
}

void MoveRun::note(const std::vector<operate::Mover::Refusal>& refusals) {
  for (const auto& refusal : refusals) {
    if (output_ == Output::text) {
      console_.end_progress();
      std::string line = "stays  ";
      append_visible(line, refusal.id);
      line += "  ";
      append_visible(line, refusal.error.message());
      console_.out(line + "\n");
    }
    if (refusals_.size() < kMostRefusals) {
      refusals_.push_back(refusal);
    }
  }
}

void MoveRun::show() { console_.progress(summary() + left() + pace()); }

std::string MoveRun::summary() const {
  const operate::MoveCount& count = mover_.count();
  std::string text = (order_.plan.dry_run ? "would move " : "") + std::to_string(count.carried) +
                     (order_.plan.dry_run ? "" : " moved");
  if (count.dead_letters > 0) {
    text += " (" + std::to_string(count.dead_letters) + " dead letters)";
  }
  return text + counted(count.refused, "stay, refused");
}

std::string MoveRun::left() const {
  const operate::MoveCount& count = mover_.count();
  return counted(count.left.in_flight, "in flight") + counted(count.left.waiting, "waiting for others") +
         counted(count.left.behind, "behind one that was refused") +
         counted(count.left.elsewhere, "shards still with their hosts") +
         counted(count.left.grouped, "left for their groups' order") + counted(count.left.later, "came later");
}

double MoveRun::rate() const {
  const std::chrono::duration<double> took = session_.clock().steady_now() - began_;
  return took < kFirstRate ? 0 : static_cast<double>(mover_.count().carried) / took.count();
}

std::string MoveRun::pace() const {
  std::string text;
  const double per_second = rate();
  if (per_second > 0) {
    text += ", " + fixed_decimal(per_second, per_second < 10 ? 1 : 0) + "/s";
    if (order_.expected && mover_.count().carried < *order_.expected) {
      const double left = static_cast<double>(*order_.expected - mover_.count().carried) / per_second;
      text += ", " + short_duration(std::chrono::seconds(static_cast<std::int64_t>(std::ceil(left)))) + " left";
    }
  }
  if (const auto cost = session_.cost()) {
    text += ", " + money(cost->read_units, cost->write_units);
  }
  return text;
}

std::string MoveRun::money(double read_units, double write_units) const {
  return prices_.text(prices_.of({0, read_units, write_units}));
}

void MoveRun::report() {
  if (output_ == Output::json) {
    return report_json();
  }
  console_.out(summary() + left() + "\n");
  const auto spent = session_.cost();
  if (!spent) {
    return;
  }
  if (order_.plan.dry_run) {
    const operate::WriteCost& would = mover_.planned_cost();
    console_.out(
        "cost: " + fixed_decimal(would.write_units, 1) + " write units, " + fixed_decimal(would.read_units, 1) +
        " read units and about " + fixed_decimal(std::ceil(would.requests), 0) + " requests, " +
        money(would.read_units, would.write_units) + " (" + prices_.origin() + "); this look has cost " +
        std::to_string(spent->requests) + " requests and " + fixed_decimal(spent->read_units, 1) + " read units\n");
  } else {
    console_.out("cost: " + spent->text(mover_.count().carried, "message") + ", " +
                 money(spent->read_units, spent->write_units) + " (" + prices_.origin() + ")\n");
  }
}

void MoveRun::report_json() {
  const operate::MoveCount& count = mover_.count();
  JsonWriter json(JsonWriter::Layout::indented);
  json.begin_object();
  json.member("from", order_.plan.pair.from);
  json.member("to", order_.plan.pair.to);
  if (order_.plan.dry_run) {
    json.member("dry_run", true);
  }
  json.member(order_.plan.dry_run ? "matched" : "moved", count.carried);
  json.member("dead_letters", count.dead_letters);
  json.member("resumed", count.resumed);
  json.member("refused", count.refused);
  json.member("in_flight", count.left.in_flight);
  json.member("waiting", count.left.waiting + count.left.behind);
  json.member("shards_with_hosts", count.left.elsewhere);
  json.member("left_for_order", count.left.grouped);
  json.member("came_later", count.left.later);
  json.key("failures");
  json.begin_array();
  for (const auto& refusal : refusals_) {
    json.begin_object();
    json.member("ID", refusal.id);
    json.member("Error", refusal.error.message());
    json.end_object();
  }
  json.end_array();
  json.key("rate");
  json.word(fixed_decimal(rate(), 1));
  json.key("cost");
  const auto spent = session_.cost();
  if (!spent) {
    json.null();
  } else {
    const operate::WriteCost& would = mover_.planned_cost();
    const double read = spent->read_units + would.read_units;
    const double written = order_.plan.dry_run ? would.write_units : spent->write_units;
    json.begin_object();
    json.member("requests", spent->requests + static_cast<std::uint64_t>(std::ceil(would.requests)));
    json.key("read_units");
    json.word(fixed_decimal(read, 1));
    json.key("write_units");
    json.word(fixed_decimal(written, 1));
    json.member("price", money(read, written));
    json.end_object();
  }
  json.end_object();
  console_.out(json.take_line());
}

Exit MoveRun::exit_of(End end) const {
  constexpr const char* kAgain = "; the same command again goes on";
  switch (end) {
    case End::failed:
      return Exit::failure(session_.place().explained(error_, order_.plan.pair.from) + " (" + summary() + ")" + kAgain);
    case End::interrupted:
      if (order_.plan.follow && mover_.at_rest()) {
        return Exit::ok();  // who follows is ended so
      }
      return {kExitInterrupted, "interrupted; " + summary() + kAgain};
    case End::finished:
      break;
  }
  const operate::MoveCount& count = mover_.count();
  if (count.left.grouped > 0) {
    return Exit::failure(std::to_string(count.left.grouped) + " messages that belong to a group stay, because " +
                         (order_.at_work.empty() ? "a job" : order_.at_work.front()) + " works on queue " +
                         order_.plan.pair.from + " and could run a later one before an earlier one has run in queue " +
                         order_.plan.pair.to + "; pause it and run this again, or carry them with --any-order");
  }
  if (count.refused > 0) {
    return Exit::failure(std::to_string(count.refused) + " messages stay in queue " + order_.plan.pair.from +
                         "; the output says why");
  }
  return Exit::ok();
}

}  // namespace sluice::cli
