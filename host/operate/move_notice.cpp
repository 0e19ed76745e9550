#include "host/operate/move_notice.hpp"

#include <utility>

#include "host/fleet/notice_json.hpp"

namespace sluice::operate {

namespace {

constexpr auto kTopic = queue::Topic::schedules;

}  // namespace

/// What the notice says.
struct MoveNotice::Text {
  std::string from_place;
  std::string to;
  std::string to_place;
  MoverName mover;
  bool at_work = false;

  static Result<Text> read(const std::string& text) {
    Text said;
    auto done = fleet::read_object(text, "the notice of a move", [&said](JsonReader& json, const std::string& name) {
      return name == "from_place" ? fleet::read_into(json, said.from_place)
             : name == "to"       ? fleet::read_into(json, said.to)
             : name == "to_place" ? fleet::read_into(json, said.to_place)
             : name == "machine"  ? fleet::read_into(json, said.mover.machine)
             : name == "pid"      ? fleet::read_into(json, said.mover.pid)
             : name == "at_work"  ? fleet::read_into(json, said.at_work)
                                  : json.skip();
    });
    return done ? Result<Text>(std::move(said)) : Result<Text>(done.error());
  }
  std::string write() const {
    fleet::NoticeWriter json;
    json.put("from_place", from_place);
    json.put("to", to);
    json.put("to_place", to_place);
    json.put("machine", mover.machine);
    json.put("pid", mover.pid);
    json.put("at_work", at_work);
    return std::move(json).finish();
  }
};

MoveNotice::MoveNotice(queue::NoticeBoard& board, const Clock& clock, MovePair pair, MoverName self, Ended ended)
    : board_(board), clock_(clock), pair_(std::move(pair)), self_(std::move(self)), ended_(std::move(ended)) {}

Result<MoveNotice::Entry> MoveNotice::enter(Deadline deadline) {
  SLUICE_TRY(notice, board_.read(kTopic, key(), deadline));
  version_ = notice->version;
  if (version_ != 0) {
    SLUICE_TRY(said, Text::read(notice->text));
    if (said->to != pair_.to || said->to_place != pair_.to_place) {
      return Error(ErrorCode::conflict, "queue " + pair_.from + " is being moved to " + said->to + " in " +
                                            said->to_place + "; run that move again until it ends, then this one");
    }
    if (said->at_work && !ended_(said->mover)) {
      const SteadyTime now = clock_.steady_now();
      if (seen_version_ && *seen_version_ != version_) {
        return Error(ErrorCode::conflict, "process " + std::to_string(said->mover.pid) + " on " + said->mover.machine +
                                              " is at this move; wait for it, or end it and run this again");
      }
      seen_since_ = seen_version_ ? seen_since_ : now;
      seen_version_ = version_;
      if (now - seen_since_ < kSilent) {
        return Entry{.ours = false, .found = true, .again = now + std::chrono::seconds(1)};
      }
    }
  }
  const bool found = version_ != 0;
  if (auto posted = post(true, deadline); !posted) {
    if (posted.error().code() == ErrorCode::conflict) {
      // Somebody was in between, or what was read was old: the next look tells.
      seen_version_.reset();
      return Entry{.ours = false, .found = found, .again = clock_.steady_now() + std::chrono::seconds(1)};
    }
    return posted.error();
  }
  return Entry{.ours = true, .found = found, .again = {}};
}

Result<void> MoveNotice::post(bool at_work, Deadline deadline) {
  const SteadyTime began = clock_.steady_now();
  const Text text{
      .from_place = pair_.from_place, .to = pair_.to, .to_place = pair_.to_place, .mover = self_, .at_work = at_work};
  queue::Notice notice{.key = key(), .text = text.write(), .version = version_};
  auto posted = board_.post(kTopic, notice, deadline);
  if (!posted && posted.error().code() != ErrorCode::denied) {
    // The answer may have been lost: then the notice says so.
    const auto there = board_.read(kTopic, key(), deadline);
    if (there && there->version == version_ + 1 && there->text == notice.text) {
      posted = there->version;
    }
  }
  if (!posted) {
    return posted.error().code() == ErrorCode::conflict
               ? Error(ErrorCode::conflict,
                       "somebody else has begun to move queue " + pair_.from + " meanwhile; leave it to one of the two")
               : posted.error();
  }
  version_ = *posted;
  ours_ = true;
  told_at_ = began;
  return {};
}

Result<void> MoveNotice::keep(Deadline deadline) {
  if (!ours_) {
    return {};
  }
  const Duration since = clock_.steady_now() - told_at_;
  if (since < kEvery) {
    return {};
  }
  auto told = post(true, deadline);
  // Not to have been heard for once is no reason to stop.
  if (!told && told.error().code() != ErrorCode::conflict && clock_.steady_now() - told_at_ < kRely) {
    return {};
  }
  return told;
}

Result<void> MoveNotice::leave(bool nothing_taken, Deadline deadline) {
  if (!ours_) {
    return {};
  }
  ours_ = false;
  if (nothing_taken) {
    return board_.take_down(kTopic, key(), version_, deadline);
  }
  auto posted = post(false, deadline);
  ours_ = false;
  return posted;
}

}  // namespace sluice::operate
