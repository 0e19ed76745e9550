#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "host/plugin/option_values.hpp"
#include "host/queue/message.hpp"

/// What travels from a host to a Runner, as bytes. Both ends are the same program, so there is no version.
namespace sluice::isolation {

/// How a Runner begins. A value.
struct RunnerStart {
  std::string job;
  std::string plugin;  ///< file
  std::string handler;
  plugin::OptionValues options;
  std::uint64_t memory = 0;  ///< limit in bytes; 0: none
};

std::string pack_start(const RunnerStart& start);
std::optional<RunnerStart> unpack_start(std::string_view bytes);

/// One message with what its handler is told besides.
std::size_t packed_size(const queue::Message& message, std::string_view queue);
/// Into that many bytes.
void pack_message(const queue::Message& message, std::string_view queue, std::uint32_t max_attempts, char* bytes);

struct MessageParcel {
  queue::Message message;
  std::string queue;
  std::uint32_t max_attempts = 0;
};
/// Into what was there before, whose memory is used again. False for bytes that are none.
bool unpack_message(std::string_view bytes, MessageParcel& parcel);

}  // namespace sluice::isolation
