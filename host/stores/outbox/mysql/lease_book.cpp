#include "host/stores/outbox/mysql/lease_book.hpp"

#include <chrono>

#include "host/stores/outbox/mysql/names.hpp"

namespace sluice::queue::outbox::mysql {

namespace {

// What a row is of.
constexpr int kBucket = 1;
constexpr int kMember = 2;
constexpr int kTries = 4;
constexpr unsigned int kSyntaxError = 1064;

std::string milliseconds_of(Duration span) {
  return std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(span).count());
}

constexpr const char* kColumns =
    " (\n"
    "  space CHAR(40) CHARACTER SET ascii NOT NULL,  -- which job: SHA1 of its name\n"
    "  kind TINYINT NOT NULL,     -- 1: a bucket, 2: a host's session\n"
    "  number BIGINT NOT NULL,    -- of the bucket, or of the session\n"
    "  owner BIGINT NOT NULL,     -- of a bucket: the session that has it, or 0\n"
    "  counter BIGINT NOT NULL,   -- grows with each change of hands, or with each heartbeat\n"
    "  lease_ms BIGINT NOT NULL,  -- of a session: how long others wait without a heartbeat\n"
    "  buckets INT NOT NULL,      -- of a session: into how many it shares the outbox\n"
    "  PRIMARY KEY (space, kind, number)\n"
    ") ENGINE=InnoDB;\n";

}  // namespace

std::string side_table_of(const TableSettings& settings) {
  return (settings.schema.empty() ? "" : identifier(settings.schema) + ".") + identifier(settings.table + "_sluice");
}

std::string side_table_ddl(const TableSettings& settings) {
  return "\n-- Who has which rows, for coordination = \"table\". Short-lived facts: it may be emptied while no host "
         "runs.\n"
         "CREATE TABLE " +
         side_table_of(settings) + kColumns;
}

void MysqlLeaseBook::open(const LockSpace& space) { space_ = "SHA1(" + bytes_literal(space.name) + ")"; }

std::string MysqlLeaseBook::rows_of(int kind) const {
  return " WHERE space=" + space_ + " AND kind=" + std::to_string(kind);
}

std::string MysqlLeaseBook::heartbeat(const LeaseMember& member) const {
  return "UPDATE " + side_ + " SET counter=" + std::to_string(member.counter) + rows_of(kMember) +
         " AND number=" + std::to_string(member.name);
}

Result<void> MysqlLeaseBook::announce(const LeaseMember& member, Deadline deadline) {
  if (member.counter > 1) {
    SLUICE_TRY(written, session_->run(heartbeat(member), deadline));
    return *written == 1 ? Result<void>() : Result<void>(name_is_gone());
  }
  const std::string insert =
      "INSERT IGNORE INTO " + side_ + " (space,kind,number,owner,counter,lease_ms,buckets) VALUES ";
  std::string buckets;
  for (std::uint32_t bucket = 0; bucket < member.buckets; ++bucket) {
    buckets += (bucket == 0 ? "(" : ",(") + space_ + "," + std::to_string(kBucket) + "," + std::to_string(bucket) +
               ",0,1,0,0)";
  }
  const std::string self = "(" + space_ + "," + std::to_string(kMember) + "," + std::to_string(member.name) + ",0," +
                           std::to_string(member.counter) + "," + milliseconds_of(member.lease) + "," +
                           std::to_string(member.buckets) + ")";
  for (const std::string& rows : {buckets, self}) {
    SLUICE_PASS_ON(session_->run(insert + rows, deadline));
  }
  return {};
}

Result<std::vector<LeaseMember>> MysqlLeaseBook::members(Deadline deadline) {
  SLUICE_TRY(rows, session_->rows("SELECT number,counter,lease_ms,buckets FROM " + side_ + rows_of(kMember), deadline));
  std::vector<LeaseMember> members;
  members.reserve(rows->size());
  for (const Cells& row : *rows) {
    members.push_back({.name = number_of(row[0]),
                       .counter = number_of(row[1]),
                       .lease = std::chrono::milliseconds(number_of(row[2])),
                       .buckets = static_cast<std::uint32_t>(number_of(row[3]))});
  }
  return members;
}

void MysqlLeaseBook::bury(std::span<const LeaseMember> dead, Deadline deadline) {
  for (const LeaseMember& member : dead) {
    const auto ignored =
        session_->run("DELETE FROM " + side_ + rows_of(kMember) + " AND number=" + std::to_string(member.name) +
                          " AND counter=" + std::to_string(member.counter),
                      deadline);
    static_cast<void>(ignored);
  }
}

Result<std::map<std::uint32_t, BucketLease>> MysqlLeaseBook::buckets(Deadline deadline) {
  const auto rows =
      session_->rows("SELECT b.number,b.counter,IFNULL(m.number,0) FROM " + side_ + " b LEFT JOIN " + side_ +
                         " m ON m.space=b.space AND m.kind=" + std::to_string(kMember) +
                         " AND m.number=b.owner WHERE b.space=" + space_ + " AND b.kind=" + std::to_string(kBucket),
                     deadline);
  SLUICE_PASS_ON(rows);
  std::map<std::uint32_t, BucketLease> leases;
  for (const Cells& row : *rows) {
    leases[static_cast<std::uint32_t>(number_of(row[0]))] = {.owner = number_of(row[2]), .epoch = number_of(row[1])};
  }
  return leases;
}

Result<std::vector<std::uint32_t>> MysqlLeaseBook::change_hands(std::span<const Handover> handovers, std::int64_t owner,
                                                                Deadline deadline) {
  for (int attempt = 1;; ++attempt) {
    auto changed = take(handovers, owner, deadline);
    if (changed || session_->over()) {
      return changed;
    }
    const bool again = may_be_tried_again(session_->fault()) && attempt < kTries;
    roll_back(deadline);
    if (!again || session_->over()) {
      return changed;
    }
  }
}

Result<std::vector<std::uint32_t>> MysqlLeaseBook::take(std::span<const Handover> handovers, std::int64_t owner,
                                                        Deadline deadline) {
  std::map<std::int64_t, std::int64_t> epochs;
  std::vector<std::int64_t> numbers;
  std::vector<std::int64_t> deposed;
  for (const Handover& handover : handovers) {
    epochs[handover.bucket] = handover.before.epoch;
    numbers.push_back(handover.bucket);
    deposed.push_back(handover.before.owner);
  }
  SLUICE_PASS_ON(session_->run("START TRANSACTION", deadline));
  if (owner != 0) {
    SLUICE_PASS_ON(session_->run(
        "DELETE FROM " + side_ + rows_of(kMember) + " AND number IN (" + list_of(deposed) + ") ORDER BY number",
        deadline));
  }
  SLUICE_TRY(locked, lock_buckets(list_of(numbers), owner != 0, deadline));
  std::vector<std::uint32_t> changed;
  for (const Cells& row : *locked) {
    if (number_of(row[1]) == epochs[number_of(row[0])]) {
      changed.push_back(static_cast<std::uint32_t>(number_of(row[0])));
    }
  }
  if (!changed.empty()) {
    SLUICE_PASS_ON(session_->run("UPDATE " + side_ + " SET owner=" + std::to_string(owner) + ",counter=counter+1" +
                                     rows_of(kBucket) + " AND number IN (" +
                                     list_of(std::span<const std::uint32_t>(changed)) + ")",
                                 deadline));
  }
  const auto committed = session_->run("COMMIT", deadline);
  return committed.has_error() ? Result<std::vector<std::uint32_t>>(committed.error()) : changed;
}

// What somebody else is taking is not waited for, where the server knows how. What is given back is: whoever was too
// late for it has it locked for a moment, and a bucket that stayed in the name of somebody who does not work on it
// would be lost.
Result<std::vector<Cells>> MysqlLeaseBook::lock_buckets(const std::string& numbers, bool skip, Deadline deadline) {
  const std::string statement = "SELECT number,counter FROM " + side_ + rows_of(kBucket) + " AND number IN (" +
                                numbers + ") ORDER BY number FOR UPDATE";
  if (skip && skips_locked_) {
    auto rows = session_->rows(statement + " SKIP LOCKED", deadline);
    if (rows || session_->fault().code != kSyntaxError) {
      return rows;
    }
    skips_locked_ = false;
  }
  return session_->rows(statement, deadline);
}

void MysqlLeaseBook::leave(const LeaseMember& member, Deadline deadline) {
  const std::string name = std::to_string(member.name);
  for (const std::string& statement :
       {"UPDATE " + side_ + " SET owner=0,counter=counter+1" + rows_of(kBucket) + " AND owner=" + name,
        "DELETE FROM " + side_ + rows_of(kMember) + " AND number=" + name}) {
    if (session_->over() || session_->run(statement, deadline).has_error()) {
      return;
    }
  }
}

Result<std::vector<MarkStatus>> MysqlLeaseBook::mark(std::span<const Mark> marks, const LeaseMember* member,
                                                     Deadline deadline) {
  return marks_.write(marks, deadline, member == nullptr ? std::string() : heartbeat(*member));
}

void MysqlLeaseBook::roll_back(Deadline deadline) {
  // Where it fails the session is over, and the server rolls back itself.
  const auto ignored = session_->run("ROLLBACK", deadline);
  static_cast<void>(ignored);
}

}  // namespace sluice::queue::outbox::mysql
