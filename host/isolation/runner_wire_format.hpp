#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "host/plugin/option_values.hpp"
#include "host/queue/effects.hpp"
#include "host/queue/message.hpp"
#include "sluice/effects.h"

/// What travels between a host and a Runner, as bytes. Both ends are the same program, so there is no version.
namespace sluice::isolation {

/// How a Runner begins. A value.
struct RunnerSetup {
  std::string job;
  std::string plugin;  ///< file
  std::string handler;
  plugin::OptionValues options;
  std::uint64_t memory = 0;                  ///< limit in bytes; 0: none
  sluice_store effects = SLUICE_STORE_NONE;  ///< as plugin::EffectRules
  bool keeps_key = false;
};

std::string pack_setup(const RunnerSetup& setup);
std::optional<RunnerSetup> unpack_setup(std::string_view bytes);

/// What a handler is told besides its message. Borrows.
struct MessageFacts {
  std::string_view queue;
  std::uint32_t max_attempts = 0;
  const std::string* first_result = nullptr;  ///< as plugin::Attempt's
};

std::size_t packed_size(const queue::Message& message, const MessageFacts& facts);
/// Into that many bytes.
void pack_message(const queue::Message& message, const MessageFacts& facts, char* bytes);

struct WireMessage {
  queue::Message message;
  std::string queue;
  std::uint32_t max_attempts = 0;
  std::shared_ptr<const std::string> first_result{};
};

/// Into what was there before, whose memory is used again. False for bytes that are none.
bool unpack_message(std::string_view bytes, WireMessage& into);

/// The most effects that a host takes with an outcome: what is staged, with the lengths of its many parts.
inline constexpr std::size_t kMostPackedEffects = 4 * queue::kMostEffectBytes;

std::string pack_effects(const queue::Effects& effects);
/// Null for bytes that are none, or more than a handler may stage.
std::shared_ptr<const queue::Effects> unpack_effects(std::string_view bytes);

}  // namespace sluice::isolation
