#include "host/stores/core/writes.hpp"

#include <utility>
#include <variant>

namespace sluice::queue::core {

EffectPart part_of(const EffectWrite& write, std::size_t number, std::string_view table) {
  std::string name = name_of(write, number);
  if (!table.empty()) {
    name.append(" on table ").append(table);
  }
  return {std::move(name), write.on_refusal == OnRefusal::reject};
}

EffectPart part_of(const EmittedMessage& emitted) { return {name_of(emitted)}; }

SettleResult refused(const EffectPart& part, ErrorCode code, const std::string& why) {
  return {SettleStatus::refused, Error(code, part.name + " was refused: " + why), part.reject};
}

SettleResult refused_condition(const EffectPart& part, std::string_view found, std::string_view asked) {
  return refused(part, ErrorCode::conflict,
                 queue::refused_condition(found, asked, part.reject ? OnRefusal::reject : OnRefusal::retry));
}

SettleResult refused_kind(const EffectWrite& write, std::size_t number) {
  if (const auto* item = std::get_if<ItemWrite>(&write.write)) {
    EffectPart part = part_of(write, number, {});
    part.name += " on DynamoDB table " + item->table;
    return refused(part, ErrorCode::invalid,
                   "the message lies in a SQLite store; write with SQL statements there, or put the queue into "
                   "DynamoDB");
  }
  return refused(part_of(write, number, {}), ErrorCode::invalid,
                 "it is an SQL statement and the message lies in DynamoDB; write items there, or put the queue into a "
                 "SQLite store");
}

WriteFate fate_of(const DoubtfulWrite& write, const std::optional<RecordTrace>& record) {
  const bool removes = write.nonce.empty();
  if (record ? !removes && record->nonce == write.nonce : removes) {
    return WriteFate::applied;
  }
  const bool too_late = !record || (write.version && *write.version != record->version);
  return too_late || write.refused ? WriteFate::refused : WriteFate::unknown;
}

}  // namespace sluice::queue::core
