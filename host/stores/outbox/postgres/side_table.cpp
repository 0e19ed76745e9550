#include "host/stores/outbox/postgres/side_table.hpp"

#include <chrono>

namespace sluice::queue::outbox::postgres {
namespace {

// What a row is of.
constexpr const char* kBucket = "1";
constexpr const char* kMember = "2";

constexpr const char* kDdl = R"(
-- Who has which rows, for coordination = "table". Short-lived facts: it may be emptied while no host runs.
CREATE TABLE IF NOT EXISTS @SIDE (
  space text NOT NULL,       -- which job
  kind smallint NOT NULL,    -- 1: a bucket, 2: a host's session
  number bigint NOT NULL,    -- of the bucket, or of the session
  owner bigint NOT NULL,     -- of a bucket: the session that has it, or 0
  counter bigint NOT NULL,   -- grows with each change of hands, or with each heartbeat
  lease_ms bigint NOT NULL,  -- of a session: how long others wait without a heartbeat
  buckets int NOT NULL,      -- of a session: into how many it shares the outbox
  PRIMARY KEY (space, kind, number)
) WITH (fillfactor = 50);
)";

std::string milliseconds_of(Duration span) {
  return std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(span).count());
}

std::string where(const char* kind, const char* number = nullptr) {
  return std::string(" WHERE space = $1 AND kind = ") + kind +
         (number == nullptr ? std::string() : std::string(" AND number = ") + number);
}

template <typename Range, typename Number>
std::string array_from(const Range& range, Number number) {
  std::vector<std::int64_t> numbers;
  numbers.reserve(range.size());
  for (const auto& one : range) {
    numbers.push_back(number(one));
  }
  return array_of(numbers);
}

}  // namespace

SideTable::SideTable(const TableSettings& settings)
    : name_((settings.schema.empty() ? "" : quoted(settings.schema) + ".") + quoted(settings.table + "_sluice")) {}

std::string SideTable::ddl() const {
  std::string text = kDdl;
  const std::string mark = "@SIDE";
  return text.replace(text.find(mark), mark.size(), name_);
}

Statement SideTable::announce_first(const std::string& space, const LeaseMember& member) const {
  return {"INSERT INTO " + name_ + " (space, kind, number, owner, counter, lease_ms, buckets) VALUES ($1, " + kMember +
              ", $2::bigint, 0, $3::bigint, $4::bigint, $5::int) RETURNING number",
          {space, std::to_string(member.name), std::to_string(member.counter), milliseconds_of(member.lease),
           std::to_string(member.buckets)}};
}

Statement SideTable::add_buckets(const std::string& space, std::uint32_t buckets) const {
  return {"INSERT INTO " + name_ + " (space, kind, number, owner, counter, lease_ms, buckets) SELECT $1, " + kBucket +
              ", b, 0, 1, 0, 0 FROM generate_series(0, $2::bigint - 1) AS b ON CONFLICT DO NOTHING",
          {space, std::to_string(buckets)}};
}

Statement SideTable::announce(const std::string& space, const LeaseMember& member) const {
  return {"UPDATE " + name_ + " SET counter = $3::bigint" + where(kMember, "$2::bigint") + " RETURNING number",
          {space, std::to_string(member.name), std::to_string(member.counter)}};
}

Statement SideTable::members(const std::string& space) const {
  return {"SELECT number, counter, lease_ms, buckets FROM " + name_ + where(kMember), {space}};
}

Statement SideTable::bury(const std::string& space, std::span<const LeaseMember> dead) const {
  return {"DELETE FROM " + name_ +
              " s USING unnest($2::bigint[], $3::bigint[]) AS d(number, counter) WHERE s.space = $1 " +
              "AND s.kind = " + kMember + " AND s.number = d.number AND s.counter = d.counter",
          {space, array_from(dead, [](const LeaseMember& member) { return member.name; }),
           array_from(dead, [](const LeaseMember& member) { return member.counter; })}};
}

Statement SideTable::buckets(const std::string& space) const {
  return {"SELECT b.number, b.counter, coalesce(m.number, 0) FROM " + name_ + " b LEFT JOIN " + name_ +
              " m ON m.space = b.space AND m.kind = " + kMember + " AND m.number = b.owner WHERE b.space = $1 AND " +
              "b.kind = " + kBucket,
          {space}};
}

// In the order of their numbers, as everybody does, so that nobody waits for somebody who waits for him.
Statement SideTable::depose(const std::string& space, std::span<const Handover> handovers) const {
  const std::string owners = array_from(handovers, [](const Handover& handover) { return handover.before.owner; });
  return {"DELETE FROM " + name_ + where(kMember) + " AND number IN (SELECT number FROM " + name_ + where(kMember) +
              " AND number = ANY ($2::bigint[]) ORDER BY number FOR UPDATE)",
          {space, owners}};
}

// What somebody else is taking is not waited for. What is given back is: whoever was too late for it has it locked for
// a moment, and a bucket that stayed in the name of somebody who does not work on it would be lost.
Statement SideTable::change_hands(const std::string& space, std::span<const Handover> handovers,
                                  std::int64_t owner) const {
  return {"WITH free AS MATERIALIZED (SELECT s.number FROM " + name_ +
              " s JOIN unnest($2::bigint[], $3::bigint[]) AS w(number, counter) ON s.number = w.number AND " +
              "s.counter = w.counter WHERE s.space = $1 AND s.kind = " + kBucket +
              " ORDER BY s.number FOR UPDATE OF s" + (owner == 0 ? ") " : " SKIP LOCKED) ") + "UPDATE " + name_ +
              " SET owner = $4::bigint, counter = counter + 1" + where(kBucket) +
              " AND number IN (SELECT number FROM free) RETURNING number",
          {space, array_from(handovers, [](const Handover& one) { return std::int64_t{one.bucket}; }),
           array_from(handovers, [](const Handover& one) { return one.before.epoch; }), std::to_string(owner)}};
}

Statement SideTable::give_all_back(const std::string& space, std::int64_t member) const {
  return {"UPDATE " + name_ + " SET owner = 0, counter = counter + 1" + where(kBucket) + " AND owner = $2::bigint",
          {space, std::to_string(member)}};
}

Statement SideTable::remove(const std::string& space, std::int64_t member) const {
  return {"DELETE FROM " + name_ + where(kMember, "$2::bigint"), {space, std::to_string(member)}};
}

std::string SideTable::while_member(const std::string& space, std::int64_t member,
                                    std::vector<Parameter>& parameters) const {
  parameters.emplace_back(space);
  const std::string space_name = "$" + std::to_string(parameters.size());
  parameters.emplace_back(std::to_string(member));
  return " AND EXISTS (SELECT 1 FROM " + name_ + " s WHERE s.space = " + space_name + " AND s.kind = " + kMember +
         " AND s.number = $" + std::to_string(parameters.size()) + "::bigint)";
}

}  // namespace sluice::queue::outbox::postgres
