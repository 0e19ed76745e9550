#include "host/stores/core/writes.hpp"

#include <utility>
#include <variant>

namespace sluice::queue::core {

namespace {

/// It can only be made in a store of the other kind.
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

}  // namespace

std::optional<SettleResult> refused_at_once(const Effects& effects, WriteKind takes, const MessageCheck& check) {
  if (auto why = refused_effects(effects)) {
    return SettleResult{SettleStatus::refused, std::move(*why)};
  }
  for (std::size_t i = 0; i < effects.writes.size(); ++i) {
    const bool sql = std::holds_alternative<SqlWrite>(effects.writes[i].write);
    if (sql != (takes == WriteKind::sql)) {
      return refused_kind(effects.writes[i], i);
    }
  }
  for (const EmittedMessage& emitted : effects.messages) {
    auto why = check ? check(emitted) : std::nullopt;
    if (!why && has_send_keys(emitted.message)) {
      why = refused_send_keys(emitted.message);
    }
    if (why) {
      return refused_message(emitted, *why);
    }
  }
  return std::nullopt;
}

EffectPart part_of(const EffectWrite& write, std::size_t number, std::string_view table) {
  std::string name = name_of(write, number);
  if (!table.empty()) {
    name.append(" on table ").append(table);
  }
  return {std::move(name), write.on_refusal == OnRefusal::reject};
}

SettleResult refused(const EffectPart& part, ErrorCode code, const std::string& why) {
  return {SettleStatus::refused, Error(code, part.name + " was refused: " + why), part.reject};
}

SettleResult refused_condition(const EffectPart& part, std::string_view found, std::string_view asked) {
  return refused(part, ErrorCode::conflict,
                 queue::refused_condition(found, asked, part.reject ? OnRefusal::reject : OnRefusal::retry));
}

SettleResult refused_message(const EmittedMessage& emitted, const Error& why) {
  return refused({name_of(emitted)}, why.code(), why.message());
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
