#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "host/plugin/option_values.hpp"
#include "host/queue/message.hpp"
#include "sluice/effects.h"

/// What travels from a host to a Runner, as bytes. Both ends are the same program, so there is no version.
namespace sluice::isolation {

/// How a Runner begins. A value.
struct RunnerStart {
  std::string job;
  std::string plugin;  ///< file
  std::string handler;
  plugin::OptionValues options;
  std::uint64_t memory = 0;                  ///< limit in bytes; 0: none
  sluice_store effects = SLUICE_STORE_NONE;  ///< as plugin::EffectRules
  bool keeps_key = false;
};

std::string pack_start(const RunnerStart& start);
std::optional<RunnerStart> unpack_start(std::string_view bytes);

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
bool unpack_message(std::string_view bytes, WireMessage& parcel);

}  // namespace sluice::isolation
