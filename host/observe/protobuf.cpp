#include "host/observe/protobuf.hpp"

#include <optional>

namespace sluice::observe::protobuf {

namespace {

constexpr std::uint32_t kVarint = 0;
constexpr std::uint32_t kFixed64 = 1;
constexpr std::uint32_t kDelimited = 2;
constexpr std::uint32_t kFixed32 = 5;
constexpr unsigned kMostShift = 63;

void append_varint(std::string& out, std::uint64_t value) {
  while (value >= 0x80) {
    out += static_cast<char>((value & 0x7fU) | 0x80U);
    value >>= 7U;
  }
  out += static_cast<char>(value);
}

void append_key(std::string& out, std::uint32_t field, std::uint32_t kind) { append_varint(out, field << 3U | kind); }

void append_little_endian(std::string& out, std::uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) {
    out += static_cast<char>(value >> (8U * static_cast<unsigned>(i)) & 0xffU);
  }
}

std::optional<std::uint64_t> take_varint(std::string_view& from) {
  std::uint64_t value = 0;
  for (unsigned shift = 0; shift <= kMostShift; shift += 7) {
    if (from.empty()) {
      return std::nullopt;
    }
    const auto byte = static_cast<unsigned char>(from.front());
    from.remove_prefix(1);
    value |= static_cast<std::uint64_t>(byte & 0x7fU) << shift;
    if (byte < 0x80) {
      return value;
    }
  }
  return std::nullopt;
}

}  // namespace

void append_number(std::string& out, std::uint32_t field, std::uint64_t value) {
  append_key(out, field, kVarint);
  append_varint(out, value);
}

void append_fixed32(std::string& out, std::uint32_t field, std::uint32_t value) {
  append_key(out, field, kFixed32);
  append_little_endian(out, value, 4);
}

void append_fixed64(std::string& out, std::uint32_t field, std::uint64_t value) {
  append_key(out, field, kFixed64);
  append_little_endian(out, value, 8);
}

void append_bytes(std::string& out, std::uint32_t field, std::string_view bytes) {
  append_key(out, field, kDelimited);
  append_varint(out, bytes.size());
  out += bytes;
}

bool read(std::string_view message,
          const std::function<void(std::uint32_t field, std::uint64_t number, std::string_view bytes)>& found) {
  while (!message.empty()) {
    const auto key = take_varint(message);
    if (!key) {
      return false;
    }
    const auto field = static_cast<std::uint32_t>(*key >> 3U);
    const std::uint64_t kind = *key & 7U;
    if (kind == kVarint) {
      const auto value = take_varint(message);
      if (!value) {
        return false;
      }
      found(field, *value, {});
      continue;
    }
    std::uint64_t size = kind == kFixed64 ? 8 : 4;
    if (kind == kDelimited) {
      const auto length = take_varint(message);
      if (!length) {
        return false;
      }
      size = *length;
    } else if (kind != kFixed64 && kind != kFixed32) {
      return false;
    }
    if (size > message.size()) {
      return false;
    }
    found(field, 0, message.substr(0, size));
    message.remove_prefix(size);
  }
  return true;
}

}  // namespace sluice::observe::protobuf
