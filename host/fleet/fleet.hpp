#pragma once

#include <boost/core/noncopyable.hpp>

#include "base/random.hpp"
#include "base/ranges.hpp"
#include "host/fleet/audit.hpp"
#include "host/fleet/steering.hpp"
#include "host/queue/queues.hpp"

namespace sluice::fleet {

/// What the age of a record tells.
enum class Pulse {
  fresh,
  late,    ///< overdue: the host is busy, cut off or dead
  silent,  ///< has ended, or is so long overdue that it is taken for dead; its record is swept after kKeepSilent. Never
           ///< one whose process lives on this machine.
};

std::string_view to_string(Pulse pulse);  // "fresh", "late", "silent"

/// How long the record of a host is kept to be seen that ended without a word or left work behind.
inline constexpr Duration kKeepSilent = std::chrono::hours(1);

/// A host, as its record on one board tells of it. A value.
struct KnownHost {
  HostRecord record;
  Pulse pulse = Pulse::fresh;
  Duration age{};  ///< of the record; zero where it is dated in the future
  /// Why a host of this machine does not answer, where its control socket or its crash ledger tells more than the age.
  std::string silence{};
  std::string place;  ///< of the board

  bool answers() const { return pulse == Pulse::fresh && silence.empty(); }
};

/// A board, or a notice on it, that could not be read. A value.
struct BoardTrouble {
  std::string place;
  Error error;

  /// With the place before it, unless the error names that itself: "table 'gone' does not exist".
  std::string text() const {
    const bool names_it = error.message().starts_with(place.substr(0, place.find(" in ")));
    return names_it ? error.message() : place + ": " + error.message();
  }
};

/// All that boards tell of hosts. A value.
struct FleetView {
  std::vector<KnownHost> hosts;      ///< one for each instance, by label; of its records the youngest
  std::vector<KnownHost> sightings;  ///< every record: a host that works on several tables has one on each
  std::vector<BoardTrouble> troubles;
};

/// A directive and where it was given. A value.
struct Given {
  Directive directive;
  std::string place;
  /// Hosts have seen it once their `seen` on that board is at least this.
  std::int64_t version = 0;
  std::optional<Error> unnoted{};  ///< why the audit does not show it; nothing: it does
};

/// What boards say of wishes. A value.
struct SteeringView {
  std::vector<Given> given;  ///< orders too, while they live
  std::vector<BoardTrouble> troubles;
};

/// What the hosts made of directives: of those on their boards. A value.
struct Obedience {
  std::vector<std::string> seen_by{};       ///< labels of those who have seen everything
  std::vector<std::string> waited_for{};    ///< labels of those that have not and are not silent
  std::map<std::string, Duration> quiet{};  ///< of these: since when those have not been heard of that do not answer
  /// What they said to orders, by label: one answer each, on however many boards it has read it.
  std::map<std::string, Answer> answers{};

  /// Somebody has done it; of orders only.
  bool done_by_somebody() const;
};

/// Writes into the host's record on this board that it has ended, where there is one.
Result<void> note_end(queue::NoticeBoard& board, const HostEnd& end, Deadline deadline);

/// An operator's side of the fleet: the boards of some queues, each once. What it writes is conditional and tried
/// again, so that two operators at a time lose nothing of each other. Thread-safe, blocks until the deadline at most.
class Fleet : boost::noncopyable {
 public:
  /// Opens the boards of these queues. Fails where one cannot be opened. `queues` and `random` outlive it.
  static Result<std::unique_ptr<Fleet>> open(queue::Queues& queues, const std::vector<std::string>& names,
                                             Random& random);

  /// Fails only where no board could be read.
  Result<FleetView> hosts(Deadline deadline);
  Result<SteeringView> steering(Deadline deadline);
  /// The newest first.
  Result<AuditView> audit(const AuditQuery& query, Deadline deadline);

  /// Hosts tell in detail, every few seconds, for that long from now on; to be said again while somebody looks.
  Result<void> watch(Duration span, Deadline deadline);

  /// Gives a directive (without id, `by`, `at`) and notes it for the audit; one result for each board. `queue` is where
  /// a job or a message lies; empty: wherever a host knows what is meant, else on every board. ErrorCode::invalid, with
  /// nothing written, for one with a flaw; another error when a board did not take it, others may have. What the
  /// audit does not take stands all the same.
  Result<std::vector<Given>> give(const Directive& directive, const std::string& queue, const std::string& who,
                                  Deadline deadline);
  /// Takes back what stands of `wish` (nothing: of all) about `name` (empty: anything), on every board; what that was.
  Result<std::vector<Given>> reset(std::optional<Wish> wish, const std::string& name, const std::string& who,
                                   Deadline deadline);
  /// Notes a deed that went over no board, on the one of `queue`; empty: on every one.
  Result<void> note(const Directive& directive, const std::string& queue, const std::string& who, Deadline deadline);

  /// What has become of directives that were given, as far as `view` tells.
  static Obedience obedience(const std::vector<Given>& all, const FleetView& view);

 private:
  /// A board, and the queues that it is asked for.
  struct Post {
    std::vector<std::string> queues;
    std::unique_ptr<queue::NoticeBoard> board;

    bool serves(const std::string& queue) const { return contains(queues, queue); }
  };

  explicit Fleet(Random& random) : random_(random) {}
  std::string make_id();
  std::vector<Post*> posts_for(const Directive& directive, const std::string& queue, Deadline deadline);
  Result<Given> give_on(Post& post, Directive directive, Deadline deadline);

  Random& random_;
  std::vector<Post> posts_;
};

}  // namespace sluice::fleet
