#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

/// As much of Protocol Buffers' wire format as OTLP takes. Appends to, and reads, plain strings of bytes.
namespace sluice::observe::protobuf {

/// Of kind varint: enumerations, truths and integers. Zero is written too.
void append_number(std::string& out, std::uint32_t field, std::uint64_t value);
void append_fixed32(std::string& out, std::uint32_t field, std::uint32_t value);
void append_fixed64(std::string& out, std::uint32_t field, std::uint64_t value);
/// Of kind length-delimited: texts, bytes and messages.
void append_bytes(std::string& out, std::uint32_t field, std::string_view bytes);

/// Calls for each field of a message: with its number, and its value as a number or as bytes, whichever it is. False:
/// the bytes are no message; what was read before has been told.
bool read(std::string_view message,
          const std::function<void(std::uint32_t field, std::uint64_t number, std::string_view bytes)>& found);

}  // namespace sluice::observe::protobuf
