#include "host/stores/outbox/mysql/locks.hpp"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

namespace sluice::queue::outbox::mysql {

namespace {

using sql::Cell;
using sql::SqlConnection;
using sql::SqlServer;
using sql::SqlTable;

// Members hold a place each, which whoever counts them looks at.
constexpr std::uint32_t kPlaces = 128;
// A member says with locks how many buckets it knows: one for each bit that is set.
constexpr std::uint32_t kBits = 13;
constexpr std::size_t kLocksAtOnce = 256;
constexpr Duration kJoinTime = std::chrono::seconds(5);

/// Locks of the server by name, which a session holds until it ends. They are the server's and not a database's, and
/// each node of a Galera cluster has its own.
class MysqlLocks final : public LockSession {
 public:
  MysqlLocks(SqlServer& server, std::unique_ptr<SqlConnection> connection, std::string place, const Clock& clock)
      : server_(server), connection_(std::move(connection)), server_place_(std::move(place)), clock_(clock) {}

  Result<Members> join(const LockSpace& space, Deadline deadline) override {
    SLUICE_PASS_ON(name_space(space, deadline));
    // One at a time, so that nobody sees a place without its bits.
    const Deadline waits = deadline.earlier(Deadline::after(clock_, kJoinTime));
    const auto seconds = std::chrono::floor<std::chrono::seconds>(waits.left(clock_.steady_now())).count();
    SLUICE_TRY(alone, flags({"GET_LOCK(" + lock_name("join") + "," + std::to_string(seconds) + ")"}, deadline));
    if (!alone->front()) {
      return Error(ErrorCode::throttled, server_place_ + ": others are joining the same outbox; try again");
    }
    auto members = take_place(space, deadline);
    SLUICE_PASS_ON(flags({"RELEASE_LOCK(" + lock_name("join") + ")"}, deadline));
    return members;
  }

  Result<Members> beat(Deadline deadline) override { return look(deadline); }

  Result<std::vector<std::uint32_t>> lock(std::span<const std::uint32_t> buckets, Deadline deadline) override {
    std::vector<std::uint32_t> wanted;
    std::copy_if(buckets.begin(), buckets.end(), std::back_inserter(wanted),
                 [this](std::uint32_t bucket) { return !held_.contains(bucket); });
    std::vector<std::uint32_t> got;
    std::vector<std::string> calls;
    calls.reserve(wanted.size());
    for (const std::uint32_t bucket : wanted) {
      calls.push_back(if_here("GET_LOCK(" + lock_name("b" + std::to_string(bucket)) + ",0)"));
    }
    SLUICE_TRY(answers, flags(calls, deadline));
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      if ((*answers)[i]) {
        got.push_back(wanted[i]);
        held_.insert(wanted[i]);
      }
    }
    return got;
  }

  Result<void> unlock(std::span<const std::uint32_t> buckets, Deadline deadline) override {
    std::vector<std::string> calls;
    for (const std::uint32_t bucket : buckets) {
      if (held_.erase(bucket) != 0) {
        calls.push_back(if_here("RELEASE_LOCK(" + lock_name("b" + std::to_string(bucket)) + ")"));
      }
    }
    const auto answers = flags(calls, deadline);
    return answers.has_error() ? Result<void>(answers.error()) : Result<void>();
  }

  Result<std::vector<MarkStatus>> mark(std::span<const Mark> marks, Deadline deadline) override {
    return sql::write_marks(server_, *connection_, marks, nullptr, deadline);
  }

 private:
  /// Names have 64 characters at most, so that the space's is hashed; by the server, which adds whose table it is.
  Result<void> name_space(const LockSpace& space, Deadline deadline) {
    const SqlTable& table = server_.table();
    const std::string schema = table.settings().schema;
    SLUICE_TRY(hashed,
               connection_->run(
                   table.sql("SELECT SHA1(CONCAT_WS('/', IF(@4 = 0, @1, LOWER(@1)), IF(@4 = 0, @2, LOWER(@2)), @3))",
                             {schema.empty() ? "IFNULL(DATABASE(), '')" : table.text(schema),
                              table.text(table.settings().table), table.dialect().exact_text(space.name),
                              "@@lower_case_table_names"}),
                   deadline));
    prefix_ = "sluice:" + hashed->rows.front()[0].value_or("") + ":";
    buckets_ = space.buckets;
    return {};
  }

  std::string lock_name(const std::string& what) const { return "'" + prefix_ + what + "'"; }
  std::string place_name(std::uint32_t place) const { return lock_name("m" + std::to_string(place)); }
  std::string bit_name(std::uint32_t place, std::uint32_t bit) const {
    return lock_name("m" + std::to_string(place) + "n" + std::to_string(bit));
  }

  /// Whether the session that answers holds this place: behind a proxy it may be another one than before.
  std::string held_here(std::uint32_t place) const {
    return "IFNULL(IS_USED_LOCK(" + place_name(place) + ")=CONNECTION_ID(),0)";
  }
  /// Locks of another session are not ours, whose they seem to be there.
  std::string if_here(const std::string& call) const { return "IF(" + held_here(place_) + "," + call + ",0)"; }
  Error shared_session(ErrorCode code) const {
    return {code, server_place_ +
                      ": the server's sessions are dealt out to several clients, by a proxy in between, so that locks "
                      "of a session keep nobody away; set coordination = \"table\" in [outbox.NAME], or connect "
                      "directly"};
  }

  /// What each of these functions answers: 1 is true; 0 and NULL are false.
  Result<std::vector<bool>> flags(const std::vector<std::string>& calls, Deadline deadline) {
    std::vector<bool> answers;
    for (std::size_t begin = 0; begin < calls.size(); begin += kLocksAtOnce) {
      std::string statement = "SELECT ";
      const std::size_t end = std::min(calls.size(), begin + kLocksAtOnce);
      for (std::size_t i = begin; i < end; ++i) {
        statement += (i == begin ? "" : ",") + calls[i];
      }
      SLUICE_TRY(answer, connection_->run(statement, deadline));
      for (const Cell& cell : answer->rows.front()) {
        answers.push_back(cell && *cell != "0");
      }
    }
    return answers;
  }

  Result<std::vector<bool>> taken_places(Deadline deadline) {
    std::vector<std::string> calls;
    for (std::uint32_t place = 0; place < kPlaces; ++place) {
      calls.push_back("IS_USED_LOCK(" + place_name(place) + ") IS NOT NULL");
    }
    return flags(calls, deadline);
  }

  Result<Members> take_place(const LockSpace& space, Deadline deadline) {
    SLUICE_TRY(taken, taken_places(deadline));
    const auto free = std::find(taken->begin(), taken->end(), false);
    if (free == taken->end()) {
      return Error(ErrorCode::over_limit, server_place_ + ": the outbox has " + std::to_string(kPlaces) +
                                              " members already, and no more can share it");
    }
    std::vector<std::string> calls;
    for (std::uint32_t place = 0; place < kPlaces; ++place) {
      calls.push_back(held_here(place));
    }
    SLUICE_TRY(here, flags(calls, deadline));
    if (std::find(here->begin(), here->end(), true) != here->end()) {
      return shared_session(ErrorCode::invalid);
    }
    place_ = static_cast<std::uint32_t>(free - taken->begin());
    calls.clear();
    for (std::uint32_t bit = 0; bit < kBits; ++bit) {
      if (((space.buckets >> bit) & 1U) != 0) {
        calls.push_back("GET_LOCK(" + bit_name(place_, bit) + ",0)");
      }
    }
    calls.push_back("GET_LOCK(" + place_name(place_) + ",0)");
    SLUICE_TRY(got, flags(calls, deadline));
    if (std::find(got->begin(), got->end(), false) != got->end()) {
      return Error(ErrorCode::throttled, server_place_ + ": a member's place is being given up; try again");
    }
    return look(deadline);
  }

  Result<Members> look(Deadline deadline) {
    SLUICE_TRY(taken, taken_places(deadline));
    Members members{.count = 0};
    std::vector<std::string> calls{held_here(place_)};
    for (std::uint32_t place = 0; place < kPlaces; ++place) {
      if (!(*taken)[place]) {
        continue;
      }
      ++members.count;
      for (std::uint32_t bit = 0; place != place_ && bit < kBits; ++bit) {
        calls.push_back("IS_USED_LOCK(" + bit_name(place, bit) + ") IS NOT NULL");
      }
    }
    SLUICE_TRY(bits, flags(calls, deadline));
    if (!bits->front()) {
      connection_->close();
      return shared_session(ErrorCode::unavailable);
    }
    for (std::size_t begin = 1; begin < bits->size(); begin += kBits) {
      std::uint32_t buckets = 0;
      for (std::uint32_t bit = 0; bit < kBits; ++bit) {
        buckets |= (*bits)[begin + bit] ? 1U << bit : 0;
      }
      // None: it has gone between the two looks.
      if (buckets != 0 && buckets != buckets_) {
        members.other_buckets = buckets;
      }
    }
    members.count = std::max(members.count, 1U);
    return members;
  }

  SqlServer& server_;
  const std::unique_ptr<SqlConnection> connection_;
  const std::string server_place_;
  const Clock& clock_;
  std::string prefix_;
  std::uint32_t buckets_ = 0;
  std::uint32_t place_ = kPlaces;
  std::set<std::uint32_t> held_;
};

}  // namespace

std::unique_ptr<LockSession> make_locks(SqlServer& server, std::unique_ptr<SqlConnection> connection, std::string place,
                                        const Clock& clock) {
  return std::make_unique<MysqlLocks>(server, std::move(connection), std::move(place), clock);
}

}  // namespace sluice::queue::outbox::mysql
