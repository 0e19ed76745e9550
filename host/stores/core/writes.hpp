#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "host/queue/effects.hpp"
#include "host/queue/source.hpp"

/// What becomes of a write, once for all stores: how a transaction with effects is refused, and what a record tells of
/// a write whose answer was lost. Pure functions.
namespace sluice::queue::core {

// Effects. A completion and all that its handler staged are one transaction. Its order, whatever the store: the end of
// the message itself, which is the fence, before anything of the handler's. What is refused of it refuses all.

/// What one part of a transaction is called where it is refused, and what becomes of the message then.
struct EffectPart {
  std::string name;
  bool reject = false;
};
/// `write "debit" on table accounts`; `table`: empty where it is not known.
EffectPart part_of(const EffectWrite& write, std::size_t number, std::string_view table);
EffectPart part_of(const EmittedMessage& emitted);

SettleResult refused(const EffectPart& part, ErrorCode code, const std::string& why);
/// Its condition does not hold: what was found, and what asked for it.
SettleResult refused_condition(const EffectPart& part, std::string_view found, std::string_view asked);
/// It can only be made in a store of the other kind.
SettleResult refused_kind(const EffectWrite& write, std::size_t number);

// Unknown outcomes.

enum class WriteFate : std::uint8_t {
  applied,
  refused,  ///< somebody was quicker: it has not taken effect, and never will
  unknown,  ///< it may still arrive
};
/// A conditional write whose answer was lost, or that was refused after an earlier try whose answer was lost.
struct DoubtfulWrite {
  std::string_view nonce;               ///< that it leaves; empty: it removes the record
  std::optional<std::int64_t> version;  ///< on which it is conditional; nothing: on none
  bool refused = false;                 ///< the last try was
};
/// The record as a consistent read after it has it.
struct RecordTrace {
  std::string_view nonce;
  std::int64_t version = 0;
};
/// `record`: nothing where there is none any more.
WriteFate fate_of(const DoubtfulWrite& write, const std::optional<RecordTrace>& record);

}  // namespace sluice::queue::core
